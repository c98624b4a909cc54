//! The heap usage of a piece of work.

use dhat::{HeapStats, Profiler};

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

/// What was allocated since the start of a measurement, on any thread.
///
/// A block that grows in place or moves counts as another allocation, of its new size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heap {
    pub allocations: u64,
    pub bytes: u64,
    /// The largest number of bytes that were allocated at one time.
    pub peak: u64,
    /// The number of bytes that are still allocated.
    pub held: u64,
}

/// A running measurement, which ends when this value is dropped. Only one measurement can run at a
/// time.
pub struct Measurement(Profiler);

impl Measurement {
    pub fn begin() -> Self {
        // The traces of where allocations came from are as short as possible, because nobody reads
        // them. No file with results is written.
        Self(
            Profiler::builder()
                .trim_backtraces(Some(4))
                .testing()
                .build(),
        )
    }

    pub fn so_far(&self) -> Heap {
        let stats = HeapStats::get();
        Heap {
            allocations: stats.total_blocks,
            bytes: stats.total_bytes,
            peak: stats.max_bytes as u64,
            held: stats.curr_bytes as u64,
        }
    }
}

/// The median of each figure.
pub fn median(heaps: &[Heap]) -> Heap {
    let of = |figure: fn(&Heap) -> u64| {
        let mut figures: Vec<u64> = heaps.iter().map(figure).collect();
        figures.sort_unstable();
        figures[figures.len() / 2]
    };
    Heap {
        allocations: of(|heap| heap.allocations),
        bytes: of(|heap| heap.bytes),
        peak: of(|heap| heap.peak),
        held: of(|heap| heap.held),
    }
}
