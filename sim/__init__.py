# SPDX-License-Identifier: Apache-2.0
"""What a cluster would gain: engine models, closed forms, simulation, the papers' numbers.

`models` are the formulas, `engine_files` the engines they are fed with (`engines/*.toml`), `plan`,
`reproduce` and `simulate` the commands of those names.
"""
