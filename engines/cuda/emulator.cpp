// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/emulator.hpp"

#include <ucontext.h>

#include <cstdlib>
#include <random>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WPR_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define WPR_TSAN 1
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#define WPR_ASAN 1
#endif
#ifdef __SANITIZE_THREAD__
#define WPR_TSAN 1
#endif
#ifdef WPR_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef WPR_TSAN
#include <sanitizer/tsan_interface.h>
#endif

extern "C" void wpr_cuda_switch(void** from, void* to);  // below, where it is

namespace wirepress::cuda {
namespace {

constexpr size_t kStack = size_t{256} << 10;

#if defined(__x86_64__) && !defined(__CET__)
// Where a flow of control stands that has given way: its stack pointer, below which lie the
// registers that a function must keep. (ucontext asks the kernel for the signal mask each time,
// which takes most of an emulation.)
struct Context {
  void* stack = nullptr;

  void switch_to(Context* other) { wpr_cuda_switch(&stack, other->stack); }
  // entry never returns.
  void begin(std::byte* low, size_t size, void (*entry)()) {
    auto** top = reinterpret_cast<void**>(low + size);
    *--top = nullptr;  // where entry would return to; the stack is aligned as after a call
    *--top = reinterpret_cast<void*>(entry);
    for (int i = 0; i < 6; ++i) *--top = nullptr;
    stack = top;
  }
};
__asm__(
    ".pushsection .text\n"
    ".globl wpr_cuda_switch\n"
    ".hidden wpr_cuda_switch\n"
    ".type wpr_cuda_switch, @function\n"
    "wpr_cuda_switch:\n"
    "  push %rbp\n  push %rbx\n  push %r12\n  push %r13\n  push %r14\n  push %r15\n"
    "  mov %rsp, (%rdi)\n"
    "  mov %rsi, %rsp\n"
    "  pop %r15\n  pop %r14\n  pop %r13\n  pop %r12\n  pop %rbx\n  pop %rbp\n"
    "  ret\n"
    ".size wpr_cuda_switch, . - wpr_cuda_switch\n"
    ".popsection\n");
#else
struct Context {
  ucontext_t own;

  void switch_to(Context* other) { swapcontext(&own, &other->own); }
  void begin(std::byte* low, size_t size, void (*entry)()) {
    getcontext(&own);
    own.uc_stack.ss_sp = low;
    own.uc_stack.ss_size = size;
    own.uc_link = nullptr;
    makecontext(&own, entry, 0);
  }
};
#endif

enum class Is { kIdle, kReady, kAtBarrier };

struct Fibre {
  Context context;
  std::unique_ptr<std::byte[]> stack{new std::byte[kStack]};
  uint64_t block = 0;
  unsigned slot = 0, warp = 0;
  Is state = Is::kIdle;
#ifdef WPR_ASAN
  void* fake_stack = nullptr;
#endif
#ifdef WPR_TSAN
  void* fiber = __tsan_create_fiber(0);
  ~Fibre() { __tsan_destroy_fiber(fiber); }
#endif
};

}  // namespace

struct Fibres::Impl {
  static inline thread_local Impl* entering = nullptr;  // for a fibre that begins
  std::vector<std::unique_ptr<Fibre>> all;
  Context scheduler;
  Fibre* current = nullptr;
  const Body* body = nullptr;
#ifdef WPR_ASAN
  void* fake_stack = nullptr;
  const void* stack = nullptr;
  size_t stack_size = 0;
#endif
#ifdef WPR_TSAN
  void* fiber = nullptr;
#endif

  void go_on(Fibre* fibre) {
    current = fibre;
#ifdef WPR_ASAN
    __sanitizer_start_switch_fiber(&fake_stack, fibre->stack.get(), kStack);
#endif
#ifdef WPR_TSAN
    fiber = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(fibre->fiber, 0);
#endif
    entering = this;
    scheduler.switch_to(&fibre->context);
#ifdef WPR_ASAN
    __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
#endif
    current = nullptr;
  }

  void give_way([[maybe_unused]] bool ends = false) {
    Fibre* fibre = current;
#ifdef WPR_ASAN
    __sanitizer_start_switch_fiber(ends ? nullptr : &fibre->fake_stack, stack, stack_size);
#endif
#ifdef WPR_TSAN
    __tsan_switch_to_fiber(fiber, 0);
#endif
    fibre->context.switch_to(&scheduler);
    began(fibre);
  }

  void began(Fibre* fibre) {
#ifdef WPR_ASAN
    __sanitizer_finish_switch_fiber(fibre->fake_stack, &stack, &stack_size);
#else
    static_cast<void>(fibre);
#endif
  }

  static void enter() {
    Impl* const impl = entering;
    Fibre* const fibre = impl->current;
    impl->began(fibre);
    (*impl->body)(fibre->block, fibre->slot, fibre->warp);
    fibre->state = Is::kIdle;
    impl->give_way(true);
    std::abort();  // nobody goes on with one that has ended
  }

  void begin(Fibre* fibre, uint64_t block, unsigned slot, unsigned warp) {
    fibre->block = block;
    fibre->slot = slot;
    fibre->warp = warp;
    fibre->state = Is::kReady;
#ifdef WPR_ASAN
    fibre->fake_stack = nullptr;
    ASAN_UNPOISON_MEMORY_REGION(fibre->stack.get(), kStack);
#endif
    fibre->context.begin(fibre->stack.get(), kStack, enter);
  }
};

Fibres::Fibres() : impl_(new Impl) {}
Fibres::~Fibres() = default;

void Fibres::wait() { impl_->give_way(); }

void Fibres::sync() {
  impl_->current->state = Is::kAtBarrier;
  impl_->give_way();
}

bool Fibres::run(uint64_t blocks, unsigned warps, unsigned resident, uint64_t seed,
                 const Body& body) {
  // Waits in a row, with none that ends or comes to a barrier: more than any draw needs.
  constexpr uint64_t kMostIdle = 100000;
  Impl& all = *impl_;
  all.body = &body;
  while (all.all.size() < size_t{resident} * warps) all.all.push_back(std::make_unique<Fibre>());
  std::mt19937_64 random(seed);
  std::vector<Fibre*> ready;
  ready.reserve(all.all.size());
  uint64_t next = 0, idle = 0;
  const auto of = [&](unsigned slot, unsigned warp) {
    return all.all[size_t{slot} * warps + warp].get();
  };
  for (;;) {
    ready.clear();
    for (unsigned slot = 0; slot < resident; ++slot) {
      unsigned n_idle = 0, n_waiting = 0;
      for (unsigned i = 0; i < warps; ++i) {
        n_idle += of(slot, i)->state == Is::kIdle;
        n_waiting += of(slot, i)->state == Is::kAtBarrier;
      }
      if (n_idle == warps && next < blocks) {
        for (unsigned i = 0; i < warps; ++i) all.begin(of(slot, i), next, slot, i);
        ++next;
      } else if (n_waiting > 0 && n_waiting + n_idle == warps) {  // those that ended are there, too
        for (unsigned i = 0; i < warps; ++i)
          if (of(slot, i)->state == Is::kAtBarrier) of(slot, i)->state = Is::kReady;
      }
      for (unsigned i = 0; i < warps; ++i)
        if (of(slot, i)->state == Is::kReady) ready.push_back(of(slot, i));
    }
    if (ready.empty()) return true;
    if (seed != 0) ready = {ready[random() % ready.size()]};
    for (Fibre* fibre : ready) {
      all.go_on(fibre);
      idle = fibre->state == Is::kReady ? idle + 1 : 0;
    }
    if (idle >= kMostIdle) break;
  }
  for (auto& fibre : all.all) fibre->state = Is::kIdle;
  return false;
}

Status Emulator::Memory::prepare(size_t size) noexcept {
  if (size > room_ || data_ == nullptr) {  // of no bytes, too: kernels add to the address
    forbid(0, 0);
    const size_t room = size + size / 4 + 256;
    auto* const data =
        static_cast<std::byte*>(::operator new (room, std::align_val_t{256}, std::nothrow));
    if (data == nullptr) return fail(Code::kNoMemory, "cuda: no memory for %zu bytes", size);
    data_.reset(data);
    room_ = room;
  }
  forbid(size, room_);
  return {};
}

Emulator::Memory::~Memory() { forbid(0, 0); }

// Under the address sanitizer, touching these bytes is an error.
void Emulator::Memory::forbid(size_t from, size_t to) {
#ifdef WPR_ASAN
  if (data_ != nullptr) {
    ASAN_UNPOISON_MEMORY_REGION(data_.get(), room_);
    ASAN_POISON_MEMORY_REGION(data_.get() + from, to - from);
  }
#else
  static_cast<void>(from), static_cast<void>(to);
#endif
}

}  // namespace wirepress::cuda
