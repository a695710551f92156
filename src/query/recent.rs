//! Results that are kept while they are asked for, within a bound in bytes.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Keeps what was used lately. There are two generations: what is used comes into the young one; when that has grown to
/// half of the bound, it becomes the old one, and what was left in the old one is dropped.
#[derive(Debug)]
pub struct Recent<K, V> {
    kept: Mutex<Kept<K, V>>,
    most_bytes: usize,
}

#[derive(Debug)]
struct Kept<K, V> {
    young: HashMap<K, (V, usize)>,
    young_bytes: usize,
    old: HashMap<K, (V, usize)>,
    old_bytes: usize,
}

impl<K: Hash + Eq, V: Clone> Recent<K, V> {
    /// Room for so many bytes.
    pub fn new(most_bytes: usize) -> Recent<K, V> {
        let kept = Kept { young: HashMap::new(), young_bytes: 0, old: HashMap::new(), old_bytes: 0 };
        Recent { kept: Mutex::new(kept), most_bytes }
    }

    /// A value that is kept.
    pub fn get<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let mut kept = self.lock();
        if let Some((value, _)) = kept.young.get(key) {
            return Some(value.clone());
        }
        let (key, (value, bytes)) = kept.old.remove_entry(key)?;
        kept.old_bytes -= bytes;
        kept.put(key, value.clone(), bytes, self.most_bytes);
        Some(value)
    }

    /// Keeps a value that takes so many bytes, in place of what was kept for the key.
    pub fn put(&self, key: K, value: V, bytes: usize) {
        let mut kept = self.lock();
        if let Some((_, bytes)) = kept.old.remove(&key) {
            kept.old_bytes -= bytes;
        }
        kept.put(key, value, bytes, self.most_bytes);
    }

    /// Calls `each` with all that is kept.
    #[cfg(test)]
    pub(crate) fn for_each(&self, mut each: impl FnMut(&K, &V)) {
        let kept = self.lock();
        kept.young.iter().chain(&kept.old).for_each(|(key, (value, _))| each(key, value));
    }

    /// How many places the tables have.
    #[cfg(test)]
    pub(crate) fn places(&self) -> usize {
        let kept = self.lock();
        kept.young.capacity() + kept.old.capacity()
    }

    /// How many bytes are kept.
    #[cfg(test)]
    fn bytes(&self) -> usize {
        let kept = self.lock();
        kept.young_bytes + kept.old_bytes
    }

    fn lock(&self) -> MutexGuard<'_, Kept<K, V>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Hash + Eq, V> Kept<K, V> {
    fn put(&mut self, key: K, value: V, bytes: usize, most_bytes: usize) {
        self.young_bytes += bytes;
        if let Some((_, bytes)) = self.young.insert(key, (value, bytes)) {
            self.young_bytes -= bytes;
        }
        if self.young_bytes > most_bytes / 2 {
            self.old = std::mem::take(&mut self.young);
            self.old_bytes = std::mem::take(&mut self.young_bytes);
            if self.old_bytes > most_bytes {
                // One value alone was larger than all that may be kept.
                self.old.clear();
                self.old_bytes = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_stays() {
        let recent = Recent::new(100);
        for number in 0..50 {
            recent.put(number, number * 2, 10);
            // Asked for after each other one, so it outlives them.
            assert_eq!(recent.get(&0), Some(0), "after {number}");
            assert_eq!(recent.get(&number), Some(number * 2));
            assert!(recent.bytes() <= 100, "{} bytes after {number}", recent.bytes());
        }
        assert_eq!(recent.get(&20), None, "unused for long");
    }

    #[test]
    fn a_value_takes_the_place_of_its_forerunner() {
        let recent = Recent::new(100);
        recent.put("a", 1, 40);
        recent.put("a", 2, 10);
        assert_eq!((recent.get("a"), recent.bytes()), (Some(2), 10));
        // In the old generation too.
        recent.put("b", 1, 45);
        recent.put("b", 2, 5);
        recent.put("c", 1, 60);
        recent.put("c", 2, 1);
        assert_eq!((recent.get("c"), recent.get("b"), recent.get("a")), (Some(2), Some(2), None));
        recent.put("large", 1, 1_000);
        assert_eq!((recent.get("large"), recent.bytes() <= 100), (None, true));
    }
}
