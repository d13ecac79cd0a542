// SPDX-License-Identifier: GPL-2.0-or-later
//! Rows that are read from files while another program takes them by Arrow's C data interface: a long
//! table needs no more memory than its reader keeps.

use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::table::schema_capsule;

/// A function that reads the next rows; none at the end.
pub type Step = Box<dyn FnMut() -> Result<Option<RecordBatch>, ArrowError> + Send>;

/// Returns the schema of these columns: the name, the type, and whether a value may be missing.
pub fn schema(columns: &[(&str, DataType, bool)]) -> SchemaRef {
    let fields = columns.iter();
    let fields = fields.map(|(name, kind, null)| Field::new(*name, kind.clone(), *null));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// Rows of a file or a store. `pyarrow.RecordBatchReader.from_stream` takes them a part at a time;
/// `pyarrow.table`, `polars.DataFrame` and `pandas.DataFrame.from_arrow` take them all.
#[pyclass(module = "perch", frozen)]
pub struct Rows {
    origin: String,
    schema: SchemaRef,
    begin: Box<dyn Fn() -> PyResult<Step> + Send + Sync>,
}

impl Rows {
    /// Returns rows of `origin`, which `begin` begins to read whenever somebody takes them.
    pub fn new(
        origin: String,
        schema: SchemaRef,
        begin: impl Fn() -> PyResult<Step> + Send + Sync + 'static,
    ) -> Rows {
        Rows { origin, schema, begin: Box::new(begin) }
    }
}

#[pymethods]
impl Rows {
    #[getter]
    fn column_names(&self) -> Vec<String> {
        let fields = self.schema.fields().iter();
        fields.map(|field| field.name().clone()).collect()
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.schema)
    }

    /// Reads the rows from their beginning. Arrow lets a producer ignore the schema that was asked
    /// for.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let batches = Batches { schema: Arc::clone(&self.schema), step: Some((self.begin)()?) };
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    fn __repr__(&self) -> String {
        let names = self.column_names().join(", ");
        format!("<perch.Rows of {}: {names}>", self.origin)
    }
}

/// Rows that are being read. There is no step after the end, or after an error.
struct Batches {
    schema: SchemaRef,
    step: Option<Step>,
}

impl Iterator for Batches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let read = self.step.as_mut()?().transpose();
        if !matches!(read, Some(Ok(_))) {
            self.step = None;
        }
        read
    }
}

impl RecordBatchReader for Batches {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}
