/* SPDX-License-Identifier: Apache-2.0
 * A library that a program loads and unloads. */
int plugin_value = 1;
