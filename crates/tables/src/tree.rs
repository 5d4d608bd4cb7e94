//! An ordered map whose copies cost nothing and share what they have in common: a B+ tree whose nodes
//! are counted references. A change copies the nodes on its way that somebody else sees, too, and no
//! other.
//!
//! ```text
//!            Inner  [ (-) │ (m) ]            a key is the least of its child, the first one's is not
//!                    /       \               looked at
//!      Leaf [a│c│f]           [m│p│t]
//! ```
//!
//! Invariants: all leaves are equally deep; no node but the root is empty; none has more than
//! [`LEN_MAX`] entries.

use std::borrow::Borrow;
use std::sync::Arc;

/// Entries of a node, at most: what a change of one entry copies on each level.
const LEN_MAX: usize = 64;
/// A node with fewer is joined with a neighbour, if they fit into one.
const LEN_MIN: usize = LEN_MAX / 4;

/// The map.
#[derive(Clone, Debug)]
pub(crate) struct Tree<K, V> {
    root: Arc<Node<K, V>>,
    len: usize,
}

#[derive(Clone, Debug)]
enum Node<K, V> {
    Leaf(Vec<(K, V)>),
    Inner(Vec<(K, Arc<Node<K, V>>)>),
}

/// The right half of a node that was too large, and its least key.
type Split<K, V> = Option<(K, Arc<Node<K, V>>)>;

impl<K, V> Default for Tree<K, V> {
    fn default() -> Tree<K, V> {
        Tree { root: Arc::new(Node::Leaf(Vec::new())), len: 0 }
    }
}

impl<K, V> Node<K, V> {
    fn len(&self) -> usize {
        match self {
            Node::Leaf(entries) => entries.len(),
            Node::Inner(children) => children.len(),
        }
    }
}

/// The child that has a key, if any has.
fn child_of<K: Borrow<Q>, V, Q: Ord + ?Sized>(children: &[(K, V)], key: &Q) -> usize {
    children.partition_point(|(least, _)| least.borrow() <= key).saturating_sub(1)
}

/// Takes the right part of entries that are too many. What comes in order is left full behind.
fn split_off<T>(entries: &mut Vec<T>, added: usize) -> Option<Vec<T>> {
    if entries.len() <= LEN_MAX {
        return None;
    }
    let is_appended = added + 1 == entries.len();
    let at = if is_appended { LEN_MAX } else { entries.len() / 2 };
    Some(entries.split_off(at))
}

impl<K: Ord + Clone, V: Clone> Tree<K, V> {
    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// The value of a key.
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let mut node = self.root.as_ref();
        loop {
            match node {
                Node::Inner(children) => node = children.get(child_of(children, key))?.1.as_ref(),
                Node::Leaf(entries) => {
                    let found = entries.binary_search_by(|(one, _)| one.borrow().cmp(key));
                    return found.ok().map(|at| &entries[at].1);
                }
            }
        }
    }

    /// Sets the value of a key; returns the one that it had.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        let (before, split) = insert_into(&mut self.root, key, value);
        if let Some((least, right)) = split {
            let left = std::mem::replace(&mut self.root, Arc::new(Node::Leaf(Vec::new())));
            self.root = Arc::new(Node::Inner(vec![(least.clone(), left), (least, right)]));
        }
        self.len += usize::from(before.is_none());
        before
    }

    /// Takes a key out; returns its value.
    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        // Nothing is copied for a key that is not there.
        self.get(key)?;
        let removed = remove_from(&mut self.root, key);
        self.len -= usize::from(removed.is_some());
        while let Node::Inner(children) = self.root.as_ref() {
            match children.as_slice() {
                [] => self.root = Arc::new(Node::Leaf(Vec::new())),
                [(_, only)] => self.root = Arc::clone(only),
                _ => break,
            }
        }
        removed
    }

    /// The last entry.
    pub fn last(&self) -> Option<(&K, &V)> {
        let mut node = self.root.as_ref();
        loop {
            match node {
                Node::Inner(children) => node = children.last()?.1.as_ref(),
                Node::Leaf(entries) => return entries.last().map(|(key, value)| (key, value)),
            }
        }
    }

    /// All entries, in order.
    pub fn iter(&self) -> Iter<'_, K, V> {
        let mut iter = Iter { path: Vec::new() };
        iter.descend(&self.root);
        iter
    }

    /// The entries from a key on, in order.
    pub fn iter_from<Q: Ord + ?Sized>(&self, key: &Q) -> Iter<'_, K, V>
    where
        K: Borrow<Q>,
    {
        let mut iter = Iter { path: Vec::new() };
        let mut node = self.root.as_ref();
        loop {
            match node {
                Node::Inner(children) => {
                    let at = child_of(children, key);
                    iter.path.push((node, at + 1));
                    let Some((_, child)) = children.get(at) else { return iter };
                    node = child;
                }
                Node::Leaf(entries) => {
                    let at = entries.partition_point(|(one, _)| one.borrow() < key);
                    iter.path.push((node, at));
                    return iter;
                }
            }
        }
    }
}

fn insert_into<K: Ord + Clone, V: Clone>(
    node: &mut Arc<Node<K, V>>,
    key: K,
    value: V,
) -> (Option<V>, Split<K, V>) {
    match Arc::make_mut(node) {
        Node::Leaf(entries) => match entries.binary_search_by(|(one, _)| one.cmp(&key)) {
            Ok(at) => (Some(std::mem::replace(&mut entries[at].1, value)), None),
            Err(at) => {
                entries.insert(at, (key, value));
                let right = split_off(entries, at);
                (None, right.map(|right| (right[0].0.clone(), Arc::new(Node::Leaf(right)))))
            }
        },
        Node::Inner(children) => {
            let at = child_of(children, &key);
            let (before, split) = insert_into(&mut children[at].1, key, value);
            let Some(split) = split else { return (before, None) };
            children.insert(at + 1, split);
            let right = split_off(children, at + 1);
            (before, right.map(|right| (right[0].0.clone(), Arc::new(Node::Inner(right)))))
        }
    }
}

fn remove_from<K: Ord + Clone + Borrow<Q>, V: Clone, Q: Ord + ?Sized>(
    node: &mut Arc<Node<K, V>>,
    key: &Q,
) -> Option<V> {
    match Arc::make_mut(node) {
        Node::Leaf(entries) => {
            let at = entries.binary_search_by(|(one, _)| one.borrow().cmp(key)).ok()?;
            Some(entries.remove(at).1)
        }
        Node::Inner(children) => {
            let at = child_of(children, key);
            let removed = remove_from(&mut children.get_mut(at)?.1, key);
            mend(children, at);
            removed
        }
    }
}

/// Takes out a child that is empty, and joins one that is small with a neighbour.
fn mend<K: Clone, V: Clone>(children: &mut Vec<(K, Arc<Node<K, V>>)>, at: usize) {
    let len = children[at].1.len();
    if len == 0 {
        children.remove(at);
        return;
    }
    if LEN_MIN <= len || children.len() < 2 {
        return;
    }
    let left = at.min(children.len() - 2);
    if LEN_MAX < children[left].1.len() + children[left + 1].1.len() {
        return;
    }
    let (least, right) = children.remove(left + 1);
    match (Arc::make_mut(&mut children[left].1), Arc::unwrap_or_clone(right)) {
        (Node::Leaf(entries), Node::Leaf(more)) => entries.extend(more),
        (Node::Inner(inner), Node::Inner(mut more)) => {
            // The first one's own was not looked at so far.
            more[0].0 = least;
            inner.extend(more);
        }
        _ => unreachable!("all leaves are equally deep"),
    }
}

/// Entries in order.
#[derive(Debug)]
pub(crate) struct Iter<'a, K, V> {
    /// From the root to a leaf: nodes, and the next place in each.
    path: Vec<(&'a Node<K, V>, usize)>,
}

impl<'a, K, V> Iter<'a, K, V> {
    fn descend(&mut self, mut node: &'a Node<K, V>) {
        loop {
            match node {
                Node::Leaf(_) => return self.path.push((node, 0)),
                Node::Inner(children) => {
                    self.path.push((node, 1));
                    let Some((_, first)) = children.first() else { return };
                    node = first;
                }
            }
        }
    }
}

impl<'a, K, V> Iterator for Iter<'a, K, V> {
    type Item = (&'a K, &'a V);

    fn next(&mut self) -> Option<(&'a K, &'a V)> {
        loop {
            let (node, next) = self.path.last_mut()?;
            let at = *next;
            *next += 1;
            match *node {
                Node::Leaf(entries) => {
                    if let Some((key, value)) = entries.get(at) {
                        return Some((key, value));
                    }
                    self.path.pop();
                }
                Node::Inner(children) => match children.get(at) {
                    Some((_, child)) => self.descend(child),
                    None => drop(self.path.pop()),
                },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rng::Random;
    use std::collections::BTreeMap;

    /// Checks a node's invariants; returns its depth.
    fn check_node<K: Ord, V>(node: &Node<K, V>, from: Option<&K>, to: Option<&K>) -> usize {
        assert!(node.len() <= LEN_MAX);
        let is_within = |key: &K| from.is_none_or(|f| f <= key) && to.is_none_or(|t| key < t);
        match node {
            Node::Leaf(entries) => {
                assert!(entries.is_sorted_by(|a, b| a.0 < b.0));
                assert!(entries.iter().all(|(key, _)| is_within(key)));
                1
            }
            Node::Inner(children) => {
                let mut depths = Vec::new();
                for (at, (least, child)) in children.iter().enumerate() {
                    assert_ne!(child.len(), 0);
                    let from = if at == 0 { from } else { Some(least) };
                    let to = children.get(at + 1).map(|(least, _)| least).or(to);
                    depths.push(check_node(child, from, to));
                }
                assert!(depths.iter().all(|depth| *depth == depths[0]));
                depths[0] + 1
            }
        }
    }

    #[track_caller]
    fn check(tree: &Tree<u64, u64>, model: &BTreeMap<u64, u64>) {
        check_node(&tree.root, None, None);
        assert_eq!(tree.len(), model.len());
        assert!(tree.iter().eq(model.iter()));
    }

    #[test]
    fn it_is_a_map_and_copies_keep_what_they_had() {
        let mut dice = Random::seeded(7);
        for keys in [50, 3000, 100_000] {
            let (mut tree, mut model) = (Tree::default(), BTreeMap::new());
            let mut copies = Vec::new();
            for step in 0..6000u64 {
                let key = dice.below(keys);
                // First it grows, then it shrinks.
                if dice.below(6000) < step {
                    assert_eq!(tree.remove(&key), model.remove(&key));
                    let from = dice.below(keys);
                    if let Some((&there, _)) = model.range(from..).next() {
                        assert_eq!(tree.remove(&there), model.remove(&there));
                    }
                } else {
                    assert_eq!(tree.insert(key, step), model.insert(key, step));
                }
                let from = dice.below(keys);
                assert!(tree.iter_from(&from).take(3).eq(model.range(from..).take(3)));
                assert_eq!(tree.get(&from), model.get(&from));
                assert_eq!(tree.last(), model.last_key_value());
                if step % 1500 == 700 {
                    copies.push((tree.clone(), model.clone()));
                }
            }
            check(&tree, &model);
            copies.iter().for_each(|(tree, model)| check(tree, model));
            while let Some((key, value)) = model.pop_last() {
                assert_eq!(tree.remove(&key), Some(value));
            }
            check(&tree, &model);
        }
    }

    #[test]
    fn what_comes_in_order_fills_its_nodes() {
        let mut tree = Tree::default();
        (0..64 * 64).for_each(|key| assert_eq!(tree.insert(key, key), None));
        let Node::Inner(children) = tree.root.as_ref() else { panic!("two levels") };
        assert!(children.iter().all(|(_, child)| child.len() == LEN_MAX));
        assert_eq!(tree.iter_from(&4000).count(), 96);
        let reversed: Tree<u64, u64> = Tree::default();
        assert_eq!(reversed.iter().count() + reversed.iter_from(&3).count(), 0);
    }
}
