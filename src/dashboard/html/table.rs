//! Tables, defined by their columns.

use maud::{Markup, Render, html};

/// A table. Each column is defined once, with its name and a function that renders the cell of a row. On a phone, each
/// row becomes a card, and the column name is shown next to the cell.
pub(in crate::dashboard) struct Table<'a, T> {
    class: &'static str,
    columns: Vec<Column<'a, T>>,
    rows: Vec<&'a T>,
}

struct Column<'a, T> {
    name: &'static str,
    kind: Kind,
    cell: Box<dyn Fn(&T) -> Markup + 'a>,
}

#[derive(Clone, Copy)]
enum Kind {
    /// A column with a name, and optionally with a class for its cells.
    Named(Option<&'static str>),
    /// The column that names the row.
    RowHead,
    /// A column whose name only screen readers announce.
    Unnamed,
}

impl<'a, T> Table<'a, T> {
    pub(in crate::dashboard) fn of(rows: impl IntoIterator<Item = &'a T>) -> Self {
        Self {
            class: "",
            columns: Vec::new(),
            rows: rows.into_iter().collect(),
        }
    }

    /// Gives the table a class of its own.
    pub(in crate::dashboard) fn class(self, class: &'static str) -> Self {
        Self { class, ..self }
    }

    pub(in crate::dashboard) fn column(
        self,
        name: &'static str,
        cell: impl Fn(&T) -> Markup + 'a,
    ) -> Self {
        self.add(name, Kind::Named(None), cell)
    }

    pub(in crate::dashboard) fn number(
        self,
        name: &'static str,
        cell: impl Fn(&T) -> Markup + 'a,
    ) -> Self {
        self.styled("number", name, cell)
    }

    /// Adds a column whose cells have a class.
    pub(in crate::dashboard) fn styled(
        self,
        class: &'static str,
        name: &'static str,
        cell: impl Fn(&T) -> Markup + 'a,
    ) -> Self {
        self.add(name, Kind::Named(Some(class)), cell)
    }

    pub(in crate::dashboard) fn row_head(
        self,
        name: &'static str,
        cell: impl Fn(&T) -> Markup + 'a,
    ) -> Self {
        self.add(name, Kind::RowHead, cell)
    }

    pub(in crate::dashboard) fn unnamed(
        self,
        name: &'static str,
        cell: impl Fn(&T) -> Markup + 'a,
    ) -> Self {
        self.add(name, Kind::Unnamed, cell)
    }

    fn add(mut self, name: &'static str, kind: Kind, cell: impl Fn(&T) -> Markup + 'a) -> Self {
        let cell = Box::new(cell);
        self.columns.push(Column { name, kind, cell });
        self
    }
}

impl<T> Column<'_, T> {
    fn head(&self) -> Markup {
        let is_number =
            matches!(self.kind, Kind::Named(Some(class)) if class.starts_with("number"));
        html! {
            th class=[is_number.then_some("number")] scope="col" {
                @if let Kind::Unnamed = self.kind { span.hidden { (self.name) } }
                @else { (self.name) }
            }
        }
    }

    fn cell(&self, row: &T) -> Markup {
        let cell = (self.cell)(row);
        match self.kind {
            Kind::Named(class) => html! { td class=[class] data-label=(self.name) { (cell) } },
            Kind::RowHead => html! { th scope="row" { (cell) } },
            Kind::Unnamed => html! { td { (cell) } },
        }
    }
}

impl<T> Render for Table<'_, T> {
    fn render(&self) -> Markup {
        html! {
            div.scroll {
                table class={ "stacked " (self.class) } {
                    thead { tr { @for column in &self.columns { (column.head()) } } }
                    tbody {
                        @for row in &self.rows {
                            tr { @for column in &self.columns { (column.cell(row)) } }
                        }
                    }
                }
            }
        }
    }
}
