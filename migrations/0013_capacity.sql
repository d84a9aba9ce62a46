-- +goose Up
-- What the provider of a service declares that it can take, over all replicas together: calls that begin, in tenths of a call a second, and calls
-- at once. NULL is no limit.
ALTER TABLE services
	ADD COLUMN capacity_tenths_per_second integer
		CONSTRAINT services_capacity_rate_range CHECK (capacity_tenths_per_second BETWEEN 1 AND 100000),
	ADD COLUMN capacity_concurrency integer
		CONSTRAINT services_capacity_concurrency_range CHECK (capacity_concurrency BETWEEN 1 AND 10000);

-- A trial call that finds its service full is given back, also the only one of its day.
ALTER TABLE trial_days
	DROP CONSTRAINT trial_days_positive,
	ADD CONSTRAINT trial_days_not_negative CHECK (used >= 0);
