-- Waits for the running attempt at a delivery, and holds back the next attempt until the end of the transaction.
--
-- $1 endpoint, $2 tenant, $3 id, $4 `lock_timeout` for the rest of the transaction.
select case when set_config('lock_timeout', $4, true) is not null then
    pg_advisory_xact_lock(hashtextextended($3, hashtextextended($2, hashtextextended($1, 0))))
end
