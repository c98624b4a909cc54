//! Gives the database another environment.

use sqlx::{PgPool, Row};

use crate::transaction::{ShortTx, environment};

/// The row lock makes two adoptions run one after the other.
const BEFORE: &str = "select name from idempotent_webhook.environment for update";

const SET: &str = "
    insert into idempotent_webhook.environment (name)
    values ($1)
    on conflict (is_only) do update
    set name = excluded.name, named_at = excluded.named_at
";

/// The adopted environment is no longer another environment, so its row in `other_environments` is deleted.
const FORGET_OTHER: &str = "delete from idempotent_webhook.other_environments where name = $1";

/// The record of an adoption.
#[derive(Debug)]
pub(crate) struct Adopted {
    #[cfg_attr(
        not(feature = "dashboard"),
        expect(dead_code, reason = "the dashboard shows it")
    )]
    pub(crate) action: i64,
    /// The endpoints that the adoption has paused.
    pub(crate) paused: Vec<String>,
}

/// Gives the database of `pool` another [environment](crate::Recovery::environment), or its first one. Returns the
/// endpoints that the adoption has paused.
///
/// For example, a copy of the production database becomes the database of `staging`. From now on, processes of this
/// environment run the deliveries that are kept in the database, and processes of any other environment do not.
/// Deliveries that were kept before belong to another environment: **each endpoint with deliveries that are due or dead
/// is left paused**, so that you can discard or erase the deliveries that must not run here, and then
/// [resume](crate::Endpoint::resume) the endpoint.
///
/// The adoption is one transaction, and is recorded among the operator actions. If the database has this
/// environment already, nothing changes.
///
/// ```no_run
/// use idempotent_webhook::Endpoint;
/// use idempotent_webhook::recovery::{Filter, adopt};
///
/// # async fn main_(pool: sqlx::PgPool) -> sqlx::Result<()> {
/// for name in adopt(&pool, "staging").await? {
///     let endpoint = Endpoint::new(pool.clone(), name);
///     endpoint.discard_all(&Filter::new()).await?;
///     endpoint.resume().await?;
/// }
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// Any error of Postgres, and `sqlx::Error::Configuration` if the name is empty, has more than 63 bytes, or
/// contains anything but visible ASCII characters.
pub async fn adopt(pool: &PgPool, environment: &str) -> sqlx::Result<Vec<String>> {
    let adopted = adopt_by(pool, environment, None).await?;
    Ok(adopted.map(|adopted| adopted.paused).unwrap_or_default())
}

/// Adopts an environment on behalf of an operator. `None` if nothing has changed.
pub(crate) async fn adopt_by(
    pool: &PgPool,
    name: &str,
    operator: Option<&str>,
) -> sqlx::Result<Option<Adopted>> {
    environment::check(name).map_err(|problem| sqlx::Error::Configuration(problem.into()))?;
    let adopted = ShortTx::run(pool, async |tx| {
        let before: Option<String> = sqlx::query_scalar(BEFORE).fetch_optional(&mut *tx).await?;
        if before.as_deref() == Some(name) {
            return Ok(None);
        }
        for sql in [SET, FORGET_OTHER] {
            sqlx::query(sql).bind(name).execute(&mut *tx).await?;
        }
        let words = match before {
            Some(before) => format!("{name}, before that {before}"),
            None => name.to_owned(),
        };
        let row = sqlx::query(include_str!("adopt.sql"))
            .bind(operator)
            .bind(words)
            .fetch_one(tx)
            .await?;
        Ok(Some(Adopted {
            action: row.try_get("action")?,
            paused: row.try_get("paused")?,
        }))
    });
    let adopted = adopted.await?;
    if let Some(Adopted { paused, .. }) = &adopted {
        tracing::info!(
            environment = name,
            operator,
            ?paused,
            "the webhook database was given another environment"
        );
    }
    Ok(adopted)
}
