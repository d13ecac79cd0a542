// SPDX-License-Identifier: GPL-2.0-or-later
//! Names of things: a number of a type of its own, and lists that only such a number indexes.
//!
//! Tasks, channels and mutexes are numbered from 0, each kind by itself. As bare integers, the
//! number of one kind would pass for that of another.

use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

/// The name of one of several things of a kind: its position in the list of them.
pub trait Id: Copy {
    /// The name of the thing at a position.
    ///
    /// # Panics
    /// In debug builds, when the position does not fit into 32 bits: the limits of what a run may
    /// have are far below.
    fn of(index: usize) -> Self;

    /// The position of the thing that this names.
    fn index(self) -> usize;
}

/// Defines types that name things, each a number of 32 bits whose default is
/// the first thing's: `ids! { /// A channel. pub ChannelId }`.
#[macro_export]
macro_rules! ids {
    ($($(#[$doc:meta])* $visible:vis $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $visible struct $name(
            /// The number.
            pub u32,
        );

        impl $crate::Id for $name {
            #[inline]
            fn of(index: usize) -> Self {
                debug_assert!(u32::try_from(index).is_ok());
                $name(index as u32)
            }

            #[inline]
            fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    )*};
}

ids! {
    /// A task: its position in the workload's list of tasks. The scheduler and the programs both
    /// name tasks by it.
    pub TaskId;
}

/// A list whose items have names of the type `I`.
#[derive(Debug)]
pub struct IdVec<I, T> {
    items: Vec<T>,
    names: PhantomData<fn(I)>,
}

impl<I: Id, T> IdVec<I, T> {
    /// Number of items.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// The list has no items.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The items in the order of their names.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.items.iter()
    }

    /// The items in the order of their names, to be changed.
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, T> {
        self.items.iter_mut()
    }

    /// The names, in order. They do not borrow the list.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = I> + use<I, T> {
        (0..self.items.len()).map(I::of)
    }

    /// The items with their names, in order.
    pub fn named(&self) -> impl Iterator<Item = (I, &T)> {
        self.ids().zip(&self.items)
    }

    /// The item at a position, for a caller that has the position and no name.
    #[inline]
    pub fn at(&self, index: usize) -> &T {
        &self.items[index]
    }

    /// See [`IdVec::at`].
    #[inline]
    pub fn at_mut(&mut self, index: usize) -> &mut T {
        &mut self.items[index]
    }

    /// Adds an item to the end of the list. Returns its name.
    pub fn push(&mut self, item: T) -> I {
        let id = I::of(self.items.len());
        self.items.push(item);
        id
    }

    /// Two different items, each to be changed.
    ///
    /// # Panics
    /// When both names are the same, or the list has no such item.
    #[inline]
    pub fn two_mut(&mut self, one: I, other: I) -> (&mut T, &mut T) {
        let (one, other) = (one.index(), other.index());
        let (low, high) = self.items.split_at_mut(one.max(other));
        if one < other { (&mut low[one], &mut high[0]) } else { (&mut high[0], &mut low[other]) }
    }

    /// The item of this name, which the list makes, with those before it, if it has none yet.
    #[inline]
    pub fn or_default(&mut self, id: I) -> &mut T
    where
        T: Default,
    {
        let index = id.index();
        if index >= self.items.len() {
            self.items.resize_with(index + 1, T::default);
        }
        &mut self.items[index]
    }
}

impl<I, T> Default for IdVec<I, T> {
    fn default() -> IdVec<I, T> {
        IdVec { items: Vec::new(), names: PhantomData }
    }
}

impl<I, T> FromIterator<T> for IdVec<I, T> {
    fn from_iter<A: IntoIterator<Item = T>>(items: A) -> IdVec<I, T> {
        IdVec { items: items.into_iter().collect(), names: PhantomData }
    }
}

impl<'a, I, T> IntoIterator for &'a IdVec<I, T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> std::slice::Iter<'a, T> {
        self.items.iter()
    }
}

impl<I: Id, T> Index<I> for IdVec<I, T> {
    type Output = T;

    #[inline]
    fn index(&self, id: I) -> &T {
        &self.items[id.index()]
    }
}

impl<I: Id, T> IndexMut<I> for IdVec<I, T> {
    #[inline]
    fn index_mut(&mut self, id: I) -> &mut T {
        &mut self.items[id.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_finds_its_item_and_the_list_grows_to_it() {
        let mut squares: IdVec<TaskId, usize> = (0..5).map(|n| n * n).collect();
        assert!(squares.named().all(|(id, &square)| id.index().pow(2) == square));
        squares[TaskId(3)] += 1;
        assert_eq!(squares[TaskId(3)], 10);
        *squares.or_default(TaskId(7)) = 49;
        assert_eq!((squares.len(), squares[TaskId(6)]), (8, 0));
        assert_eq!(squares.or_default(TaskId(1)), &mut 1);
        assert_eq!(squares.ids().next_back(), Some(TaskId(7)));
        assert_eq!(TaskId::of(7).to_string(), "7");
        assert_eq!(squares.push(64), TaskId(8));
        assert_eq!(squares.at(8), &64);
    }

    #[test]
    fn two_items_change_in_the_order_in_which_they_are_named() {
        let mut items: IdVec<TaskId, char> = "abc".chars().collect();
        for (one, other) in [(0, 2), (2, 0), (1, 2)] {
            let (a, b) = items.two_mut(TaskId(one), TaskId(other));
            std::mem::swap(a, b);
        }
        let items: Vec<_> = (&items).into_iter().collect();
        assert_eq!(items, [&'a', &'c', &'b']);
    }

    #[test]
    #[should_panic(expected = "out of bounds")]
    fn two_items_are_never_the_same() {
        let mut items: IdVec<TaskId, char> = "abc".chars().collect();
        items.two_mut(TaskId(1), TaskId(1)).0.make_ascii_uppercase();
    }
}
