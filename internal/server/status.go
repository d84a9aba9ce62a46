package server

import (
	"net/http"

	"market/internal/call"
)

// statusOf is the only place where a reason meets an HTTP status. Of rejected_by_service the service's own status is kept, of ok and caller_left
// too.
var statusOf = map[call.Reason]int{
	call.OK:         http.StatusOK,
	call.CallerLeft: http.StatusOK, // what was streamed stands under the service's own

	call.PaymentRequired:  http.StatusPaymentRequired,
	call.PaymentMalformed: http.StatusBadRequest,
	call.PaymentMismatch:  http.StatusPaymentRequired,
	call.PaymentInvalid:   http.StatusPaymentRequired,
	call.PayerUnfunded:    http.StatusPaymentRequired,
	call.SettleRejected:   http.StatusPaymentRequired,
	call.RefundLimit:      http.StatusTooManyRequests,
	call.TrialExhausted:   http.StatusTooManyRequests,

	call.InputEmpty:    http.StatusBadRequest,
	call.InputInvalid:  http.StatusUnprocessableEntity,
	call.InputTooLarge: http.StatusRequestEntityTooLarge,

	call.PaymentReused:   http.StatusConflict,
	call.InProgress:      http.StatusConflict,
	call.Conflict:        http.StatusConflict,
	call.RevisionChanged: http.StatusPreconditionFailed,
	call.NeedsReview:     http.StatusConflict,
	call.ProofRequired:   http.StatusConflict,
	call.AnswerExpired:   http.StatusGone,
	call.NotListed:       http.StatusGone,
	call.Withdrawn:       http.StatusGone,

	call.OverCapacity:      http.StatusServiceUnavailable,
	call.NotReady:          http.StatusServiceUnavailable,
	call.NotLive:           http.StatusServiceUnavailable,
	call.InCooldown:        http.StatusServiceUnavailable,
	call.Released:          http.StatusServiceUnavailable,
	call.SettlementPending: http.StatusServiceUnavailable,

	call.RejectedByService: http.StatusUnprocessableEntity, // where its status was lost

	call.UpstreamTimeout:         http.StatusGatewayTimeout,
	call.UpstreamUnreachable:     http.StatusBadGateway,
	call.Upstream5xx:             http.StatusBadGateway,
	call.UpstreamRedirect:        http.StatusBadGateway,
	call.UpstreamBadResponse:     http.StatusBadGateway,
	call.UpstreamAuth:            http.StatusBadGateway,
	call.UpstreamPaymentRequired: http.StatusBadGateway,
	call.ListingBroken:           http.StatusBadGateway,
	call.UpstreamThrottled:       http.StatusBadGateway,
	call.UpstreamTooLarge:        http.StatusBadGateway,
	call.EgressDown:              http.StatusBadGateway,
	call.LocalError:              http.StatusInternalServerError,
	call.Interrupted:             http.StatusInternalServerError,
	call.CallerStalled:           http.StatusBadGateway, // the caller's doing; but 408 would have it sent again by itself
	call.SettleFailed:            http.StatusServiceUnavailable,
	call.LateSettlement:          http.StatusBadGateway,
	call.SettlementLost:          http.StatusBadGateway,

	call.NotFound:         http.StatusNotFound,
	call.MethodNotAllowed: http.StatusMethodNotAllowed,
	call.InvalidRequest:   http.StatusUnprocessableEntity,
	call.InvalidParameter: http.StatusBadRequest,
	call.Unauthorized:     http.StatusUnauthorized,
	call.PlanLimit:        http.StatusForbidden,
	call.Forbidden:        http.StatusForbidden,
	call.TooMany:          http.StatusTooManyRequests,
	call.Internal:         http.StatusInternalServerError,
}

// statusFor is the status of a refusal or an answer with a reason. A service that may come back is not gone: who waits is told so by when to ask again.
func statusFor(reason call.Reason, comesBack bool) int {
	if reason == call.NotListed && comesBack {
		return http.StatusServiceUnavailable
	}
	return statusOf[reason]
}
