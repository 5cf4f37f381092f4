//! A list that is nearly always of one element, which then needs no allocation.

/// A list whose first element lies inline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Few<T> {
    first: Option<T>,
    /// Empty while `first` is `None`.
    more: Vec<T>,
}

impl<T> Default for Few<T> {
    fn default() -> Self {
        Self {
            first: None,
            more: Vec::new(),
        }
    }
}

impl<T> Few<T> {
    /// Whether there is no element.
    pub const fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// How many elements there are.
    pub const fn len(&self) -> usize {
        self.first.is_some() as usize + self.more.len()
    }

    /// The first element.
    pub const fn first(&self) -> Option<&T> {
        self.first.as_ref()
    }

    /// The last element.
    pub fn last(&self) -> Option<&T> {
        self.more.last().or(self.first.as_ref())
    }

    /// The elements in order.
    pub fn iter(&self) -> FewIter<'_, T> {
        self.first.iter().chain(&self.more)
    }

    pub(super) fn push(&mut self, element: T) {
        if self.first.is_none() {
            self.first = Some(element);
        } else {
            self.more.push(element);
        }
    }

    pub(super) fn extend(&mut self, element: Option<T>) {
        if let Some(element) = element {
            self.push(element);
        }
    }
}

/// Iterates over a [`Few`].
pub type FewIter<'a, T> = std::iter::Chain<std::option::Iter<'a, T>, std::slice::Iter<'a, T>>;

impl<T> IntoIterator for Few<T> {
    type Item = T;
    type IntoIter = std::iter::Chain<std::option::IntoIter<T>, std::vec::IntoIter<T>>;

    fn into_iter(self) -> Self::IntoIter {
        self.first.into_iter().chain(self.more)
    }
}

impl<'a, T> IntoIterator for &'a Few<T> {
    type Item = &'a T;
    type IntoIter = FewIter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
