use sqlx::AssertSqlSafe;

use super::database::Database;

/// What is in the crate's tables, in lower case.
pub struct Dump(String);

impl Database {
    /// All rows of the crate's tables, but for those of some tables.
    pub async fn dump(&self, without: &[&str]) -> Dump {
        let tables: Vec<String> = sqlx::query_scalar(
            "select format('%I.%I', table_schema, table_name) from information_schema.tables
             where table_schema = 'idempotent_webhook' and table_name <> all($1)",
        )
        .bind(without)
        .fetch_all(&self.pool)
        .await
        .unwrap();
        assert!(tables.len() > 5, "{tables:?}");
        let mut dump = String::new();
        for table in tables {
            let rows = format!("select coalesce(string_agg(t::text, ''), '') from {table} as t");
            let rows: String = sqlx::query_scalar(AssertSqlSafe(rows))
                .fetch_one(&self.pool)
                .await
                .unwrap();
            dump += &rows.to_lowercase();
        }
        Dump(dump)
    }
}

impl Dump {
    /// Whether a text of lower case is there, as a text or in bytes.
    pub fn has(&self, text: &str) -> bool {
        let hex: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
        self.0.contains(text) || self.0.contains(&hex)
    }
}
