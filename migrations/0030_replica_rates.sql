-- +goose Up
-- What each process may send to settlement, in micro-dollars: rate a second and burst at once, its own share of the budget in ten-thousandths (0: none), and
-- the budget that it was told. All null where it was told none. Everybody derives from the live rows how long a proof may be used.
ALTER TABLE replicas
	ADD COLUMN rate bigint,
	ADD COLUMN burst bigint,
	ADD COLUMN share integer,
	ADD COLUMN budget bigint,
	ADD CONSTRAINT replicas_terms_whole CHECK (num_nonnulls(rate, burst, share, budget) IN (0, 4)),
	ADD CONSTRAINT replicas_terms_in_range CHECK (rate > 0 AND burst > 0 AND burst <= rate AND share BETWEEN 0 AND 10000 AND budget > 0);
