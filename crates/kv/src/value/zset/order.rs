//! The order of a large sorted set: a B+tree whose inner nodes know how many items lie below each
//! child, so that ranks are found and searched in logarithmic time.
//!
//! ```text
//! inner    child: first item, how many, node │ child │ ...
//! leaf     item │ item │ ...                              in order of score, then member
//! ```
//!
//! What holds: no node but the root is empty; all leaves are equally deep; a child's first item and
//! count are those of its node.

use super::members::{Item, Members};
use std::cmp::Ordering;

/// Items or children of a node, at most.
const WIDTH_MAX: usize = 64;
/// A node with fewer is merged with a neighbour, if both together leave room.
const WIDTH_MIN: usize = WIDTH_MAX / 4;
/// How full two merged nodes may be.
const MERGED_WIDTH_MAX: usize = WIDTH_MAX * 3 / 4;
/// How full nodes are that are built at once.
const BUILT_WIDTH: usize = WIDTH_MAX * 3 / 4;

#[derive(Clone, Debug)]
enum Node {
    Leaf(Vec<Item>),
    Inner(Vec<Child>),
}

#[derive(Clone, Debug)]
struct Child {
    first: Item,
    len: usize,
    node: Node,
}

/// Items in order.
#[derive(Clone, Debug)]
pub struct Order {
    root: Node,
    len: usize,
}

impl Order {
    /// Of items that are in order.
    pub fn build(items: &[Item]) -> Order {
        let leaves = items.chunks(BUILT_WIDTH).map(|items| Node::Leaf(items.to_vec()));
        let mut level: Vec<Child> = leaves.filter_map(Child::of).collect();
        while WIDTH_MAX < level.len() {
            let mut above = Vec::with_capacity(level.len() / BUILT_WIDTH + 1);
            let mut rest = level.into_iter();
            loop {
                let children: Vec<Child> = rest.by_ref().take(BUILT_WIDTH).collect();
                let Some(child) = Child::of(Node::Inner(children)) else { break };
                above.push(child);
            }
            level = above;
        }
        let root = match level.len() {
            0 => Node::Leaf(Vec::new()),
            1 => level.remove(0).node,
            _ => Node::Inner(level),
        };
        Order { root, len: items.len() }
    }

    /// Bytes of memory, about.
    pub fn heap_size(&self) -> usize {
        // Nodes are two thirds full.
        self.len * size_of::<Item>() * 3 / 2
    }

    /// Adds an item that is not there.
    pub fn insert(&mut self, item: Item, members: &Members) {
        self.len += 1;
        let Some(right) = self.root.insert(item, members) else { return };
        let left = std::mem::replace(&mut self.root, Node::Leaf(Vec::new()));
        self.root = Node::Inner([left, right].into_iter().filter_map(Child::of).collect());
    }

    /// Takes an item out, if it is there.
    pub fn remove(&mut self, item: Item, members: &Members) {
        if !self.root.remove(item, members) {
            return;
        }
        self.len -= 1;
        while let Node::Inner(children) = &mut self.root {
            if 1 < children.len() {
                break;
            }
            self.root = children.pop().map_or_else(|| Node::Leaf(Vec::new()), |only| only.node);
        }
    }

    /// How many items there are before the first for which `is_before` does not hold, which holds
    /// for none after it.
    pub fn count_while(&self, is_before: impl Fn(Item) -> bool) -> usize {
        let (mut node, mut before) = (&self.root, 0);
        loop {
            match node {
                Node::Leaf(items) => return before + items.partition_point(|it| is_before(*it)),
                Node::Inner(children) => {
                    let at = children.partition_point(|child| is_before(child.first));
                    let Some(at) = at.checked_sub(1) else { return before };
                    before += children[..at].iter().map(|child| child.len).sum::<usize>();
                    node = &children[at].node;
                }
            }
        }
    }

    /// The leaf with the item of that rank, and where in it that is.
    pub fn leaf_at(&self, rank: usize) -> Option<(&[Item], usize)> {
        let (mut node, mut rank) = (&self.root, rank);
        loop {
            match node {
                Node::Leaf(items) => return (rank < items.len()).then_some((items, rank)),
                Node::Inner(children) => {
                    let mut found = None;
                    for child in children {
                        if rank < child.len {
                            found = Some(&child.node);
                            break;
                        }
                        rank -= child.len;
                    }
                    node = found?;
                }
            }
        }
    }
}

impl Child {
    /// A node with what is known of it; none if it is empty.
    fn of(node: Node) -> Option<Child> {
        let (first, len) = match &node {
            Node::Leaf(items) => (*items.first()?, items.len()),
            Node::Inner(children) => {
                (children.first()?.first, children.iter().map(|child| child.len).sum())
            }
        };
        Some(Child { first, len, node })
    }
}

impl Node {
    fn width(&self) -> usize {
        match self {
            Node::Leaf(items) => items.len(),
            Node::Inner(children) => children.len(),
        }
    }

    fn first(&self) -> Option<Item> {
        match self {
            Node::Leaf(items) => items.first().copied(),
            Node::Inner(children) => children.first().map(|child| child.first),
        }
    }

    /// Returns the right half, if the node became too wide.
    fn insert(&mut self, item: Item, members: &Members) -> Option<Node> {
        let is_before = |other: Item| members.compare(other, item) == Ordering::Less;
        match self {
            Node::Leaf(items) => {
                let at = items.partition_point(|other| is_before(*other));
                items.insert(at, item);
                let half = split_at(items.len(), at)?;
                Some(Node::Leaf(items.split_off(half)))
            }
            Node::Inner(children) => {
                let at = children.partition_point(|child| is_before(child.first)).saturating_sub(1);
                let child = &mut children[at];
                child.len += 1;
                let right = child.node.insert(item, members);
                child.first = child.node.first().unwrap_or(child.first);
                let right = Child::of(right?)?;
                child.len -= right.len;
                children.insert(at + 1, right);
                let half = split_at(children.len(), at + 1)?;
                Some(Node::Inner(children.split_off(half)))
            }
        }
    }

    /// Returns whether the item was there.
    fn remove(&mut self, item: Item, members: &Members) -> bool {
        match self {
            Node::Leaf(items) => {
                let is_before = |other: &Item| members.compare(*other, item) == Ordering::Less;
                let at = items.partition_point(is_before);
                let is_there = items.get(at).is_some_and(|found| found.place == item.place);
                if is_there {
                    items.remove(at);
                }
                is_there
            }
            Node::Inner(children) => {
                let is_not_after =
                    |child: &Child| members.compare(child.first, item) != Ordering::Greater;
                let at = children.partition_point(is_not_after);
                let Some(at) = at.checked_sub(1) else { return false };
                let child = &mut children[at];
                if !child.node.remove(item, members) {
                    return false;
                }
                child.len -= 1;
                child.first = child.node.first().unwrap_or(child.first);
                mend(children, at);
                true
            }
        }
    }

    /// Appends what a neighbour to the right has.
    fn append(&mut self, right: Node) {
        match (self, right) {
            (Node::Leaf(items), Node::Leaf(mut more)) => items.append(&mut more),
            (Node::Inner(children), Node::Inner(mut more)) => children.append(&mut more),
            _ => unreachable!("all leaves are equally deep"),
        }
    }
}

/// Where a node of that width is split, if it is too wide. One that grows at its end is left full:
/// scores often come in order.
fn split_at(width: usize, inserted_at: usize) -> Option<usize> {
    match width {
        ..=WIDTH_MAX => None,
        _ if inserted_at + 1 == width => Some(width - 1),
        _ => Some(width / 2),
    }
}

/// Drops a child that became empty, or merges one that became narrow.
fn mend(children: &mut Vec<Child>, at: usize) {
    let width = children[at].node.width();
    if width == 0 {
        children.remove(at);
        return;
    }
    if WIDTH_MIN <= width {
        return;
    }
    let fits = |left: usize| {
        let right = children.get(left + 1)?;
        let width = children[left].node.width() + right.node.width();
        (width <= MERGED_WIDTH_MAX).then_some(left)
    };
    let Some(left) = at.checked_sub(1).and_then(fits).or_else(|| fits(at)) else { return };
    let right = children.remove(left + 1);
    let child = &mut children[left];
    child.len += right.len;
    child.node.append(right.node);
}

#[cfg(test)]
impl Order {
    /// Asserts what holds of every tree.
    pub fn check(&self, members: &Members) {
        fn check(node: &Node, is_root: bool) -> (usize, usize) {
            assert!(is_root || 0 < node.width());
            assert!(node.width() <= WIDTH_MAX);
            let Node::Inner(children) = node else { return (node.width(), 0) };
            let mut depths = Vec::new();
            let mut len = 0;
            for child in children {
                let (below, depth) = check(&child.node, false);
                assert_eq!(child.len, below);
                assert_eq!(Some(child.first.place), child.node.first().map(|first| first.place));
                depths.push(depth);
                len += below;
            }
            assert!(depths.windows(2).all(|pair| pair[0] == pair[1]));
            (len, depths[0] + 1)
        }
        assert_eq!(check(&self.root, true).0, self.len);
        let items: Vec<Item> = (0..self.len)
            .filter_map(|rank| self.leaf_at(rank).map(|(items, at)| items[at]))
            .collect();
        assert_eq!(items.len(), self.len);
        assert!(items.windows(2).all(|two| members.compare(two[0], two[1]) == Ordering::Less));
    }
}
