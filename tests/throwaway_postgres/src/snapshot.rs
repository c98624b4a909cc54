use sqlx::{AssertSqlSafe, PgConnection};

/// All rows of the tables of these schemas, with their positions and the transactions that wrote them. A row that was
/// written again therefore counts as changed.
pub async fn snapshot(connection: &mut PgConnection, schemas: &[&str]) -> sqlx::Result<String> {
    let tables: Vec<String> = sqlx::query_scalar(
        "select format('%I.%I', schemaname, tablename) from pg_tables
         where schemaname = any($1)
         order by schemaname, tablename",
    )
    .bind(schemas)
    .fetch_all(&mut *connection)
    .await?;
    let mut snapshot = String::new();
    for table in tables {
        let rows = format!(
            "select coalesce(string_agg(concat_ws(' ', ctid, xmin, t::text), E'\\n' order by ctid), '')
             from {table} as t"
        );
        let rows: String = sqlx::query_scalar(AssertSqlSafe(rows))
            .fetch_one(&mut *connection)
            .await?;
        snapshot += &format!("{table}\n{rows}\n");
    }
    Ok(snapshot)
}
