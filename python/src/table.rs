// SPDX-License-Identifier: GPL-2.0-or-later
//! Tables that other programs read by Arrow's C data interface.

use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, RecordBatchIterator, StringArray,
};
use arrow_schema::Schema;
use arrow_schema::ffi::FFI_ArrowSchema;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::error::of_argument;

/// A table of columns. `pyarrow.table`, `polars.DataFrame` and
/// `pandas.DataFrame.from_arrow` take it.
#[pyclass(module = "perch", frozen)]
pub struct Table(RecordBatch);

#[pymethods]
impl Table {
    #[getter]
    fn column_names(&self) -> Vec<String> {
        let schema = self.0.schema();
        let fields = schema.fields().iter();
        fields.map(|field| field.name().clone()).collect()
    }

    /// The number of rows.
    #[getter]
    fn num_rows(&self) -> usize {
        self.0.num_rows()
    }

    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, self.0.schema_ref())
    }

    /// Hands the table over. Arrow lets a producer ignore the schema that was asked for.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let schema = self.0.schema();
        let batches = RecordBatchIterator::new([Ok(self.0.clone())], schema);
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    fn __repr__(&self) -> String {
        let names = self.column_names().join(", ");
        format!("<perch.Table of {} rows: {names}>", self.0.num_rows())
    }
}

/// Returns a schema as Arrow's C data interface hands it over.
pub fn schema_capsule<'py>(py: Python<'py>, schema: &Schema) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = FFI_ArrowSchema::try_from(schema);
    let schema = schema.map_err(|error| of_argument(error.to_string()))?;
    PyCapsule::new_with_value(py, schema, c"arrow_schema")
}

/// The columns of a table that is being made.
#[derive(Default)]
pub struct Columns(Vec<(String, ArrayRef)>);

impl Columns {
    /// Adds a column of texts.
    pub fn texts<'a>(&mut self, name: &str, values: impl Iterator<Item = &'a str>) {
        let values: Vec<&str> = values.collect();
        self.add(name, Arc::new(StringArray::from(values)));
    }

    /// Adds a column of numbers, some of which may be missing.
    pub fn numbers(&mut self, name: &str, values: impl Iterator<Item = Option<f64>>) {
        self.add(name, Arc::new(Float64Array::from_iter(values)));
    }

    /// Adds a column of whole numbers.
    pub fn integers(&mut self, name: &str, values: impl Iterator<Item = i64>) {
        self.add(name, Arc::new(Int64Array::from_iter_values(values)));
    }

    /// Adds a column of truth values.
    pub fn truths(&mut self, name: &str, values: impl Iterator<Item = bool>) {
        let values: Vec<bool> = values.collect();
        self.add(name, Arc::new(BooleanArray::from(values)));
    }

    /// Adds a column of an axis' values: whole numbers, numbers or truth values where all are, else
    /// texts.
    pub fn values<'a>(
        &mut self,
        name: &str,
        values: impl Iterator<Item = &'a toml::Value> + Clone,
    ) {
        let all = |is: fn(&toml::Value) -> bool| values.clone().all(is);
        let number = |value: &toml::Value| match value {
            toml::Value::Integer(whole) => Some(*whole as f64),
            value => value.as_float(),
        };
        if all(toml::Value::is_integer) {
            self.integers(name, values.filter_map(toml::Value::as_integer));
        } else if all(|value| value.is_integer() || value.is_float()) {
            self.numbers(name, values.map(number));
        } else if all(toml::Value::is_bool) {
            self.truths(name, values.filter_map(toml::Value::as_bool));
        } else {
            let texts: Vec<String> = values
                .map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_string))
                .collect();
            self.texts(name, texts.iter().map(String::as_str));
        }
    }

    fn add(&mut self, name: &str, column: ArrayRef) {
        self.0.push((name.to_string(), column));
    }

    pub fn table(self) -> Table {
        let columns = self.0.into_iter();
        let nullable = columns.map(|(name, column)| (name, column, true));
        let batch = RecordBatch::try_from_iter_with_nullable(nullable);
        Table(batch.expect("columns of the same length"))
    }
}
