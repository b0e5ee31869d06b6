//! Prefetching.

/// Prefetches the cache line in which a value begins, without waiting. This is only a hint: it affects nothing but
/// time. Code that knows what it will read some hundred nanoseconds later can thus avoid waiting for main memory.
/// Does nothing on processors without a supported prefetch instruction.
#[inline(always)]
pub fn fetch<T: ?Sized>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        #[expect(
            unsafe_code,
            reason = "prefetching reads nothing, and may be told of any address; this one is valid"
        )]
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}
