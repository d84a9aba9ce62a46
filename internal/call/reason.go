package call

// A Reason is the typed class of what happened, set where it was noticed and carried as a value. It is the `code` of our answers,
// letter by letter, and so part of the public API.
type Reason string

// Reasons of deliveries and of refusals on the paid path; Rows says in which outcome and at whose door each can stand.
const (
	OK Reason = "ok"
	// CallerLeft is a stream whose caller left, or read too slowly, before its end.
	CallerLeft Reason = "caller_left"

	PaymentMalformed Reason = "payment_malformed"
	PaymentMismatch  Reason = "payment_mismatch"
	PaymentInvalid   Reason = "payment_invalid"
	PayerUnfunded    Reason = "payer_unfunded"
	RefundLimit      Reason = "refund_limit"

	InputEmpty    Reason = "input_empty"
	InputInvalid  Reason = "input_invalid"
	InputTooLarge Reason = "input_too_large"

	// OverCapacity is a service that has as many calls as its provider declared it can take.
	OverCapacity Reason = "over_capacity"
	NotReady     Reason = "not_ready"
	Released     Reason = "released" // provably never sent: the payment may be used again
	NotLive      Reason = "not_live"
	// NotListed is a request to a service that is not for sale: delisted, suspended, held or retired.
	NotListed Reason = "not_listed"

	SettleRejected    Reason = "settle_rejected" // proved: no funds, nonce used, blocklisted
	SettleFailed      Reason = "settle_failed"   // the rail never brought it to the chain, and its time is over
	RejectedByService Reason = "rejected_by_service"

	InCooldown Reason = "in_cooldown"

	UpstreamUnreachable     Reason = "upstream_unreachable"
	UpstreamTimeout         Reason = "upstream_timeout"
	Upstream5xx             Reason = "upstream_5xx"
	UpstreamRedirect        Reason = "upstream_redirect"
	UpstreamBadResponse     Reason = "upstream_bad_response"
	UpstreamAuth            Reason = "upstream_auth"
	UpstreamPaymentRequired Reason = "upstream_payment_required"
	ListingBroken           Reason = "listing_broken" // a 4xx to the provider's own input example
	UpstreamThrottled       Reason = "upstream_throttled"
	UpstreamTooLarge        Reason = "upstream_too_large"

	Withdrawn   Reason = "withdrawn" // settled, and the service left the shelf meanwhile
	EgressDown  Reason = "egress_down"
	LocalError  Reason = "local_error"
	Interrupted Reason = "interrupted" // we stopped half way

	// CallerStalled is a stream that broke after its caller had held it up for so long that its service may have given up the connection.
	CallerStalled Reason = "caller_stalled"

	LateSettlement Reason = "late_settlement" // the caller was told no, and the money moved after all
	SettlementLost Reason = "settlement_lost" // the chain took the payment back, or it never came: there is nothing to refund
)

// Reasons that only answers carry: they end no call.
const (
	PaymentRequired   Reason = "payment_required"
	PaymentReused     Reason = "payment_reused"
	InProgress        Reason = "in_progress"
	SettlementPending Reason = "settlement_pending"
	// NeedsReview is a payment whose transfer is older than the restore of a backup: a person decides what becomes of it.
	NeedsReview      Reason = "needs_review"
	ProofRequired    Reason = "proof_required" // of who asks for an answer that is kept, or to go on with a call
	AnswerExpired    Reason = "answer_expired"
	TrialExhausted   Reason = "trial_exhausted"
	NotFound         Reason = "not_found"
	MethodNotAllowed Reason = "method_not_allowed"
	InvalidRequest   Reason = "invalid_request"
	InvalidParameter Reason = "invalid_parameter"
	Unauthorized     Reason = "unauthorized"
	Forbidden        Reason = "forbidden" // who asks is known, and may not
	TooMany          Reason = "too_many"  // requests of one network to an address that takes a few
	Conflict         Reason = "conflict"
	// PlanLimit is a request for more than the plan of its account has.
	PlanLimit Reason = "plan_limit"
	// RevisionChanged is an edit of a listing that somebody else edited since its editor read it.
	RevisionChanged Reason = "revision_changed"
	Internal        Reason = "internal"
)

// A Row says that a reason can stand in an outcome, and whose doing it is there.
type Row struct {
	Outcome Outcome
	Reason  Reason
	Party   Party
}

// Rows is the table of everything that can end a call or refuse one. A reason has one party in an outcome, so a Row is found by the two. There is one
// exception: while an outage of ours holds, what has failed by the service's doing is ours (delivery.Recorder).
func Rows() []Row {
	return []Row{
		{Served, OK, Service},
		{Served, CallerLeft, Caller},

		{Refused, PaymentMalformed, Caller},
		{Refused, PaymentMismatch, Caller},
		{Refused, PaymentInvalid, Caller},
		{Refused, PayerUnfunded, Caller},
		{Refused, RefundLimit, Caller},
		{Refused, InputEmpty, Caller},
		{Refused, InputInvalid, Caller},
		{Refused, InputTooLarge, Caller},
		{Refused, OverCapacity, Platform},
		{Refused, NotReady, Rail},
		{Refused, Released, Rail},
		{Refused, NotListed, Platform},
		{Refused, NotLive, Service},
		{Refused, SettleRejected, Caller},
		{Refused, SettleFailed, Rail},
		{Refused, RejectedByService, Caller},

		{CooldownRefused, InCooldown, Platform},

		{Failed, UpstreamUnreachable, Service},
		{Failed, UpstreamTimeout, Service},
		{Failed, Upstream5xx, Service},
		{Failed, UpstreamRedirect, Service},
		{Failed, UpstreamBadResponse, Service},
		{Failed, UpstreamAuth, Service},
		{Failed, UpstreamPaymentRequired, Service},
		{Failed, ListingBroken, Service},
		{Failed, UpstreamThrottled, Service},
		{Failed, UpstreamTooLarge, Service},
		{Failed, Withdrawn, Platform},
		{Failed, EgressDown, Platform},
		{Failed, LocalError, Platform},
		{Failed, Interrupted, Platform},
		{Failed, CallerStalled, Caller},
		{Failed, LateSettlement, Rail},
		{Failed, SettlementLost, Rail},
	}
}

// answers says whose doing the reasons are that end no call.
var answers = []struct {
	reason Reason
	party  Party
}{
	{PaymentRequired, Caller},
	{PaymentReused, Caller},
	{InProgress, Caller},
	{SettlementPending, Rail},
	{NeedsReview, Platform},
	{ProofRequired, Caller},
	{AnswerExpired, Caller},
	{TrialExhausted, Caller},
	{NotFound, Caller},
	{MethodNotAllowed, Caller},
	{InvalidRequest, Caller},
	{InvalidParameter, Caller},
	{Unauthorized, Caller},
	{Forbidden, Caller},
	{TooMany, Caller},
	{Conflict, Caller},
	{PlanLimit, Caller},
	{RevisionChanged, Caller},
	{Internal, Platform},
}

// AnswerReasons returns the reasons that end no call.
func AnswerReasons() []Reason {
	var all []Reason
	for _, a := range answers {
		all = append(all, a.reason)
	}
	return all
}

// PartyOf says whose doing a reason is; empty for a reason that is none.
func PartyOf(r Reason) Party {
	if row, ends := RowOf(r); ends {
		return row.Party
	}
	for _, a := range answers {
		if a.reason == r {
			return a.party
		}
	}
	return ""
}

// Reasons returns every reason, those of Rows first.
func Reasons() []Reason {
	var all []Reason
	for _, row := range Rows() {
		all = append(all, row.Reason)
	}
	return append(all, AnswerReasons()...)
}

// RowOf returns the row of a reason that ends or refuses a call; false for one that only answers carry.
func RowOf(r Reason) (Row, bool) {
	for _, row := range Rows() {
		if row.Reason == r {
			return row, true
		}
	}
	return Row{}, false
}

// Flags says that a failure of the service's own doing is shown to reviewers and not counted: a throttled or oversized answer is
// more often a wrong listing than a broken service.
func (r Reason) Flags() bool { return r == UpstreamThrottled || r == UpstreamTooLarge }
