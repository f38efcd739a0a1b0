//! A queue in pieces of one size: it grows without copying what it holds, and gives pieces back as they become empty.

use std::collections::VecDeque;

/// Elements of a piece. A queue holds room for no more than one piece beside its elements at either end.
const PIECE: usize = 64;

/// Elements in order. Every piece but the first and the last has [`PIECE`] elements, and none is empty.
#[derive(Debug, Clone)]
pub(super) struct Segments<T> {
    pieces: VecDeque<VecDeque<T>>,
    len: usize,
}

impl<T> Default for Segments<T> {
    fn default() -> Self {
        Self {
            pieces: VecDeque::new(),
            len: 0,
        }
    }
}

impl<T> Segments<T> {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn get(&self, at: usize) -> Option<&T> {
        let (piece, at) = self.place(at);
        self.pieces.get(piece)?.get(at)
    }

    pub fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        let (piece, at) = self.place(at);
        self.pieces.get_mut(piece)?.get_mut(at)
    }

    pub fn back(&self) -> Option<&T> {
        self.pieces.back()?.back()
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.pieces.iter().flatten()
    }

    pub fn push_back(&mut self, element: T) {
        self.len += 1;
        if let Some(last) = self.pieces.back_mut().filter(|last| last.len() < PIECE) {
            return last.push_back(element);
        }
        // A short queue takes little. Its first piece grows as it does.
        let room = match self.pieces.is_empty() {
            true => 1,
            false => PIECE,
        };
        let mut piece = VecDeque::with_capacity(room);
        piece.push_back(element);
        self.pieces.push_back(piece);
    }

    pub fn pop_front(&mut self) -> Option<T> {
        let first = self.pieces.front_mut()?;
        let element = first.pop_front();
        if first.is_empty() {
            self.pieces.pop_front();
        }
        self.len -= usize::from(element.is_some());
        element
    }

    pub fn pop_back(&mut self) -> Option<T> {
        let last = self.pieces.back_mut()?;
        let element = last.pop_back();
        if last.is_empty() {
            self.pieces.pop_back();
        }
        self.len -= usize::from(element.is_some());
        element
    }

    /// The number of elements before the first for which `is_before` is false. They are ordered by it.
    pub fn partition_point(&self, is_before: impl Fn(&T) -> bool) -> usize {
        let begins_before = |piece: &VecDeque<T>| piece.front().is_some_and(&is_before);
        let pieces = self.pieces.partition_point(begins_before);
        let Some(last) = pieces.checked_sub(1) else {
            return 0;
        };
        self.begin_of(last) + self.pieces[last].partition_point(&is_before)
    }

    /// The number of elements before a piece.
    fn begin_of(&self, piece: usize) -> usize {
        let first = self.pieces.front().map_or(0, VecDeque::len);
        match piece {
            0 => 0,
            piece => first + (piece - 1) * PIECE,
        }
    }

    /// The piece in which an element is, and its place there.
    fn place(&self, at: usize) -> (usize, usize) {
        let first = self.pieces.front().map_or(0, VecDeque::len);
        match at.checked_sub(first) {
            None => (0, at),
            Some(behind) => (1 + behind / PIECE, behind % PIECE),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    impl<T> Segments<T> {
        /// Elements for which there is memory.
        pub fn capacity(&self) -> usize {
            self.pieces.iter().map(VecDeque::capacity).sum()
        }
    }

    #[derive(Debug, Clone)]
    enum Step {
        Push(usize),
        PopFront(usize),
        PopBack(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        let count = 0..3 * PIECE;
        prop_oneof![
            count.clone().prop_map(Step::Push),
            count.clone().prop_map(Step::PopFront),
            count.prop_map(Step::PopBack),
        ]
    }

    fn check(segments: &mut Segments<usize>, expected: &VecDeque<usize>) {
        assert_eq!(segments.len(), expected.len());
        assert!(segments.iter().eq(expected.iter()));
        assert!(segments.iter().rev().eq(expected.iter().rev()));
        assert_eq!(segments.back(), expected.back());
        for at in 0..expected.len() + PIECE {
            assert_eq!(segments.get(at), expected.get(at), "at {at}");
            assert_eq!(segments.get_mut(at).as_deref(), expected.get(at), "at {at}");
        }
        let first = expected.front().copied().unwrap_or(0);
        for below in first..=first + expected.len() {
            let is_before = |element: &usize| *element < below;
            assert_eq!(segments.partition_point(is_before), below - first);
        }
        assert!(segments.capacity() <= segments.len() + 2 * PIECE);
    }

    proptest! {
        #[test]
        fn elements_are_those_of_a_queue_in_one_piece(steps in prop::collection::vec(step(), 1..12)) {
            let (mut segments, mut expected) = (Segments::default(), VecDeque::new());
            for step in steps {
                match step {
                    Step::Push(count) => (0..count).for_each(|_| {
                        let next = expected.back().map_or(7, |last| last + 1);
                        segments.push_back(next);
                        expected.push_back(next);
                    }),
                    Step::PopFront(count) => (0..count).for_each(|_| {
                        assert_eq!(segments.pop_front(), expected.pop_front());
                    }),
                    Step::PopBack(count) => (0..count).for_each(|_| {
                        assert_eq!(segments.pop_back(), expected.pop_back());
                    }),
                }
                check(&mut segments, &expected);
            }
        }
    }
}
