//! Asking for memory before it is needed.

/// Asks for the cache line in which a value begins, and waits for nothing: it is only a hint, of which nothing can be
/// seen but the time that passes. Who knows what will be read some hundred nanoseconds later need not wait for
/// main memory then. Does nothing on processors that cannot be told from here.
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
