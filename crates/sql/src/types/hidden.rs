//! What others hold and need not look into.
//!
//! A compiler proves of each future that it may go to another thread, by looking through the types of
//! all that it holds, and anew for each generic function. DataFusion's are hundreds, each in terms of
//! others: the door's handlers took 36 s of each build to check.

use std::any::Any;
use std::fmt::{Debug, Formatter};
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;

/// A value, shared by its clones, whose type is not looked through.
pub struct Hidden<T> {
    value: Arc<dyn Any + Send + Sync>,
    // A function is `Send` whatever it returns.
    kind: PhantomData<fn() -> T>,
}

impl<T: Send + Sync + 'static> Hidden<T> {
    /// Hides a value.
    pub fn new(value: T) -> Hidden<T> {
        Hidden { value: Arc::new(value), kind: PhantomData }
    }
}

impl<T> Hidden<T> {
    /// The same for who does not keep it: nothing once nobody else has it.
    pub fn weak(&self) -> Weak<T> {
        Weak { value: Arc::downgrade(&self.value), kind: PhantomData }
    }
}

/// A value that others keep.
pub struct Weak<T> {
    value: std::sync::Weak<dyn Any + Send + Sync>,
    kind: PhantomData<fn() -> T>,
}

impl<T> Weak<T> {
    /// It, as long as somebody keeps it.
    pub fn upgrade(&self) -> Option<Hidden<T>> {
        let value = self.value.upgrade()?;
        Some(Hidden { value, kind: PhantomData })
    }
}

impl<T: 'static> Deref for Hidden<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value.downcast_ref().expect("it is what it was made of")
    }
}

impl<T> Clone for Hidden<T> {
    fn clone(&self) -> Hidden<T> {
        Hidden { value: self.value.clone(), kind: PhantomData }
    }
}

impl<T: Debug + 'static> Debug for Hidden<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: PartialEq + 'static> PartialEq for Hidden<T> {
    fn eq(&self, other: &Hidden<T>) -> bool {
        **self == **other
    }
}
