// SPDX-License-Identifier: Apache-2.0
#include "codecs/zfp/warp.hpp"
#include "engines/cuda/emulated_stream.hpp"

namespace wirepress {

extern const Kernel zfp_emulated;
const Kernel zfp_emulated = zfp::OnDevice<cuda::Emulator>::kernel("emulated", always_usable);

}  // namespace wirepress
