//! Report: what a comparison found, for people and for programs.
//!
//! A [`Report`] is plain data: the machine, the device, and a [`Row`] for each way a scenario was
//! done, with times per operation. Its JSON is stable from schema 1 on; [`tables`] shows it to a
//! person, and a [`Difference`] holds one beside another.
#![forbid(unsafe_code)]

mod cells;
mod device;
mod difference;
mod growth;
mod machine;
mod page;
mod quantity;
mod reading;
mod remarks;
mod row;
mod schema;
mod table;
mod verdict;

pub use device::DeviceDescription;
pub use difference::{
    Apart, CountChange, Difference, Fact, IdleDifference, Name, OnlyIn, Origin, RowDifference,
    RowVerdict, Side, difference_text,
};
pub use growth::growth;
pub use machine::Machine;
pub use page::page;
pub use quantity::{rate, time};
pub use reading::ReadReportError;
pub use row::Row;
pub use schema::{NotRunRow, Report, SCHEMA};
pub use table::{Style, tables};
pub use verdict::verdict;
