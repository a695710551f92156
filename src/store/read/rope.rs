//! Bytes in few large pieces, so that what lies in memory is sent without being copied first.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::ops::Range;

use bytes::{Buf, Bytes};

/// Pieces shorter than this are copied together: many small pieces are slower than one copy.
const SHARE_FROM_BYTES: usize = 16 * 1024;

/// Pieces of bytes, one after the other.
#[derive(Clone, Debug, Default)]
pub struct Rope {
    pieces: VecDeque<Bytes>,
    len: usize,
}

impl Rope {
    /// The length of all pieces, in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends a piece without copying it.
    pub fn push(&mut self, piece: Bytes) {
        if !piece.is_empty() {
            self.len += piece.len();
            self.pieces.push_back(piece);
        }
    }

    /// Appends the pieces of another rope without copying them.
    pub fn append(&mut self, other: Rope) {
        self.len += other.len;
        self.pieces.extend(other.pieces);
    }

    /// The pieces.
    pub fn pieces(&self) -> impl Iterator<Item = &Bytes> {
        self.pieces.iter()
    }

    /// All bytes in one piece; copied, unless there is but one.
    pub fn to_bytes(&self) -> Bytes {
        match self.pieces.len() {
            0 => Bytes::new(),
            1 => self.pieces[0].clone(),
            _ => {
                let mut whole = Vec::with_capacity(self.len);
                self.pieces.iter().for_each(|piece| whole.extend_from_slice(piece));
                whole.into()
            }
        }
    }
}

impl<T: Into<Bytes>> From<T> for Rope {
    fn from(bytes: T) -> Rope {
        let mut rope = Rope::default();
        rope.push(bytes.into());
        rope
    }
}

impl Buf for Rope {
    fn remaining(&self) -> usize {
        self.len
    }

    fn chunk(&self) -> &[u8] {
        self.pieces.front().map_or(&[], |piece| piece)
    }

    fn advance(&mut self, mut count: usize) {
        assert!(count <= self.len, "cannot advance {count} bytes of {}", self.len);
        self.len -= count;
        while count > 0 {
            let Some(front) = self.pieces.front_mut() else { return };
            if count < front.len() {
                front.advance(count);
                return;
            }
            count -= front.len();
            self.pieces.pop_front();
        }
    }

    fn chunks_vectored<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let filled = slices.len().min(self.pieces.len());
        for (slice, piece) in slices.iter_mut().zip(&self.pieces) {
            *slice = IoSlice::new(piece);
        }
        filled
    }
}

/// Puts a rope together: short pieces are copied, long ones shared.
#[derive(Debug, Default)]
pub struct RopeWriter {
    rope: Rope,
    tail: Vec<u8>,
}

impl RopeWriter {
    /// Appends a copy of bytes.
    pub fn copy(&mut self, bytes: &[u8]) {
        self.tail.extend_from_slice(bytes);
    }

    /// Appends a part of bytes that are kept in memory anyway.
    pub fn share(&mut self, bytes: &Bytes, range: Range<usize>) {
        if range.len() < SHARE_FROM_BYTES {
            self.tail.extend_from_slice(&bytes[range]);
        } else {
            self.end_tail();
            self.rope.push(bytes.slice(range));
        }
    }

    fn end_tail(&mut self) {
        if !self.tail.is_empty() {
            self.rope.push(std::mem::take(&mut self.tail).into());
        }
    }

    /// The finished rope.
    pub fn finish(mut self) -> Rope {
        self.end_tail();
        self.rope
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_read_in_their_order() {
        let long = Bytes::from(vec![b'x'; SHARE_FROM_BYTES]);
        let mut writer = RopeWriter::default();
        writer.copy(b"one,");
        writer.share(&Bytes::from_static(b"(two)"), 1..4);
        writer.share(&long, 0..long.len());
        writer.copy(b",end");
        let mut rope = writer.finish();
        assert_eq!(rope.pieces().count(), 3, "the short pieces are copied together");
        let whole = [b"one,two", long.as_ref(), b",end"].concat();
        assert_eq!(rope.len(), whole.len());
        assert_eq!(rope.to_bytes(), whole);
        let mut slices = [IoSlice::new(&[]); 8];
        assert_eq!(rope.chunks_vectored(&mut slices), 3);
        // However it is taken, the bytes are the same.
        for step in [1, 3, 7, 10_000] {
            let mut rest = rope.clone();
            let mut read = Vec::new();
            while rest.has_remaining() {
                let taken = rest.chunk().len().min(step);
                read.extend_from_slice(&rest.chunk()[..taken]);
                rest.advance(taken);
            }
            assert_eq!(read, whole, "in steps of {step}");
        }
        rope.advance(5);
        assert_eq!(rope.to_bytes(), whole[5..]);
        rope.advance(rope.len());
        assert!(rope.is_empty() && rope.chunk().is_empty());
    }
}
