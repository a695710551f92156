//! A small seeded generator: the same numbers on every machine and in every run.

/// SplitMix64 (Steele, Lea and Flood, 2014).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The generator of one row. Each `stream` gives other numbers, so any row can be built alone.
    pub fn new(seed: u64, stream: u64) -> Random {
        let mut random = Random(seed ^ stream.wrapping_mul(0xd134_2543_de82_ef95));
        random.next();
        random
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 to just below `end`. The bias of the remainder is far below what a benchmark could show.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// A number of a range, both ends included.
    pub fn between<T: TryFrom<u64>>(&mut self, first: u64, last: u64) -> T {
        let number = first + self.below(last - first + 1);
        T::try_from(number).unwrap_or_else(|_| {
            panic!("{number} does not fit; the range of the caller is too wide")
        })
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// One of the items.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        let index: usize = self.between(0, items.len() as u64 - 1);
        &items[index]
    }

    /// The item most of the time, nothing once in `n` times.
    pub fn unless_one_in<T>(&mut self, n: u64, item: T) -> Option<T> {
        if self.one_in(n) { None } else { Some(item) }
    }
}
