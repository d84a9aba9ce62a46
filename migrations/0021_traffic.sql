-- +goose Up
-- Whether nearly all traffic is our own, or comes from nobody knows whom: an operator is told. What comes from outside, as it should, is in the index of
-- the minute, so a delivery is in one of the two, and a call that counts writes no more than before. (Unattributed traffic is in both.)
CREATE INDEX deliveries_not_external ON deliveries (origin, recorded_at DESC) INCLUDE (asked, source) WHERE origin <> 'external';
