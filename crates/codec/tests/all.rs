//! All tests of the room in one program.

mod columns;
mod golden;
mod hostile;
mod shapes;
