//! A savepoint as a SeaORM transaction.

use std::fmt;
use std::sync::Arc;

use sea_orm::entity::prelude::async_trait::async_trait;
use sea_orm::{
    AccessMode, ConnectionTrait, DbBackend, DbErr, ExecResult, IsolationLevel, QueryResult,
    Statement, TransactionError, TransactionOptions, TransactionSession, TransactionTrait,
};

use super::{SeaOrmTx, Session, Work, query_error};
use crate::transaction::savepoint::Savepoint;

/// A savepoint in the transaction of a delivery, made by `begin` of a [`SeaOrmTx`].
///
/// End it with `commit` or `rollback` of [`TransactionSession`]. Its committed writes stay if the delivery commits.
/// Dropping the savepoint rolls it back; the rollback is sent with the next statement. If the last statement in the
/// savepoint had succeeded, and the handler answers success, the layer logs this at WARN, because it is easy to forget
/// the commit.
///
/// For a savepoint with a cancelled statement, see [`Savepoint`].
#[must_use = "a savepoint that is dropped is rolled back"]
pub struct SeaOrmSavepoint<'t> {
    within: SeaOrmTx<'t>,
    open: bool,
}

impl<'t> SeaOrmSavepoint<'t> {
    pub(super) async fn begin_in(outer: &SeaOrmTx<'t>) -> Result<Self, DbErr> {
        let mut session = outer.session.lock().await;
        let dropped = session.dropped.clone();
        let begun = Savepoint::begin_on(session.at(outer.depth), dropped).await;
        let depth = begun.map(Savepoint::suspend).map_err(query_error)?;
        session.succeeded = false;
        Ok(Self {
            within: SeaOrmTx {
                session: Arc::clone(&outer.session),
                depth,
            },
            open: true,
        })
    }

    pub(super) async fn run<T, E: fmt::Display + fmt::Debug>(
        self,
        work: impl for<'c> FnOnce(&'c Self) -> Work<'c, T, E> + Send,
    ) -> Result<T, TransactionError<E>> {
        let done = work(&self).await;
        let ended = match &done {
            Ok(_) => self.commit().await,
            Err(_) => self.rollback().await,
        };
        ended.map_err(TransactionError::Connection)?;
        done.map_err(TransactionError::Transaction)
    }

    /// Resumes the savepoint, to end it.
    fn resume<'s>(&self, session: &'s mut Session<'t>) -> Savepoint<'s> {
        Savepoint::resume(
            session.connection,
            self.within.depth,
            session.dropped.clone(),
            session.succeeded,
        )
    }
}

#[async_trait]
impl TransactionSession for SeaOrmSavepoint<'_> {
    async fn commit(mut self) -> Result<(), DbErr> {
        let session = Arc::clone(&self.within.session);
        let mut session = session.lock().await;
        self.open = false;
        let savepoint = self.resume(&mut session);
        savepoint.commit().await.map_err(query_error)
    }

    async fn rollback(mut self) -> Result<(), DbErr> {
        let session = Arc::clone(&self.within.session);
        let mut session = session.lock().await;
        self.open = false;
        let savepoint = self.resume(&mut session);
        savepoint.rollback().await.map_err(query_error)
    }
}

impl Drop for SeaOrmSavepoint<'_> {
    fn drop(&mut self) {
        // If a statement holds the session's lock or is next to get it, the savepoint stays open. The statement and the
        // delivery's commit are then refused.
        if self.open
            && let Ok(mut session) = self.within.session.try_lock()
        {
            drop(self.resume(&mut session));
        }
    }
}

#[async_trait]
impl ConnectionTrait for SeaOrmSavepoint<'_> {
    fn get_database_backend(&self) -> DbBackend {
        self.within.get_database_backend()
    }

    async fn execute_raw(&self, statement: Statement) -> Result<ExecResult, DbErr> {
        self.within.execute_raw(statement).await
    }

    async fn execute_unprepared(&self, sql: &str) -> Result<ExecResult, DbErr> {
        self.within.execute_unprepared(sql).await
    }

    async fn query_one_raw(&self, statement: Statement) -> Result<Option<QueryResult>, DbErr> {
        self.within.query_one_raw(statement).await
    }

    async fn query_all_raw(&self, statement: Statement) -> Result<Vec<QueryResult>, DbErr> {
        self.within.query_all_raw(statement).await
    }
}

#[async_trait]
impl<'t> TransactionTrait for SeaOrmSavepoint<'t> {
    type Transaction = Self;

    async fn begin(&self) -> Result<Self, DbErr> {
        self.within.begin().await
    }

    async fn begin_with_config(
        &self,
        isolation_level: Option<IsolationLevel>,
        access_mode: Option<AccessMode>,
    ) -> Result<Self, DbErr> {
        self.within
            .begin_with_config(isolation_level, access_mode)
            .await
    }

    async fn begin_with_options(&self, options: TransactionOptions) -> Result<Self, DbErr> {
        self.within.begin_with_options(options).await
    }

    async fn transaction<F, T, E>(&self, work: F) -> Result<T, TransactionError<E>>
    where
        F: for<'c> FnOnce(&'c Self) -> Work<'c, T, E> + Send,
        T: Send,
        E: fmt::Display + fmt::Debug + Send,
    {
        self.within.transaction(work).await
    }

    async fn transaction_with_config<F, T, E>(
        &self,
        work: F,
        isolation_level: Option<IsolationLevel>,
        access_mode: Option<AccessMode>,
    ) -> Result<T, TransactionError<E>>
    where
        F: for<'c> FnOnce(&'c Self) -> Work<'c, T, E> + Send,
        T: Send,
        E: fmt::Display + fmt::Debug + Send,
    {
        self.within
            .transaction_with_config(work, isolation_level, access_mode)
            .await
    }
}

impl fmt::Debug for SeaOrmSavepoint<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SeaOrmSavepoint").finish_non_exhaustive()
    }
}
