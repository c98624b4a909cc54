use sqlx::AssertSqlSafe;
use throwaway_postgres::snapshot;

use super::database::Database;

/// The content of the crate's tables, in lower case.
pub struct Dump(String);

impl Database {
    /// All rows of all tables, in the form of [`throwaway_postgres::snapshot`].
    pub async fn snapshot(&self) -> String {
        let mut connection = self.pool.acquire().await.unwrap();
        snapshot(&mut connection, &["idempotent_webhook", "public"])
            .await
            .unwrap()
    }

    /// All rows of the crate's tables, except for the tables in `without`.
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

/// The columns of the crate's tables.
impl Database {
    /// The name of each column, such as `deliveries.delivery_id`.
    pub async fn columns(&self) -> Vec<String> {
        sqlx::query_scalar(
            "select table_name || '.' || column_name
             from information_schema.columns
             join information_schema.tables using (table_schema, table_name)
             where table_schema = 'idempotent_webhook' and table_type = 'BASE TABLE'",
        )
        .fetch_all(&self.pool)
        .await
        .unwrap()
    }

    /// The columns that contain a lower-case text, as text or in bytes.
    pub async fn columns_with(&self, text: &str) -> Vec<String> {
        let hex = hex_of(text);
        let mut all = Vec::new();
        for name in self.columns().await {
            let (table, column) = name.split_once('.').unwrap();
            all.push(format!(
                "select '{name}'
                 where exists (
                     select from idempotent_webhook.{table}
                     where strpos(lower({column}::text), $1) > 0 or strpos({column}::text, $2) > 0
                 )"
            ));
        }
        sqlx::query_scalar(AssertSqlSafe(all.join(" union all ") + " order by 1"))
            .bind(text)
            .bind(hex)
            .fetch_all(&self.pool)
            .await
            .unwrap()
    }
}

fn hex_of(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

impl Dump {
    /// Whether the dump contains a lower-case text, as text or in bytes.
    pub fn has(&self, text: &str) -> bool {
        self.0.contains(text) || self.0.contains(&hex_of(text))
    }
}
