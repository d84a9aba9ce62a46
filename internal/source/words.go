package source

import (
	"encoding/json"
	"regexp"
	"strings"
)

// What a JSON-RPC error code means for a node as a source.
type rpcMeaning int

const (
	rpcNone    rpcMeaning = iota // about what was asked
	rpcLimit                     // a limit, of the rate or of all
	rpcQuota                     // all that there is
	rpcDenied                    // our credential
	rpcTrouble                   // the node's own trouble
)

// rpcCodes are those that EIP-1474 and the sellers of nodes use. The same number can be another thing elsewhere (-32003 is a transaction that was rejected):
// such ones are known by their words alone.
var rpcCodes = map[int]rpcMeaning{
	429:    rpcLimit, // Alchemy, Infura, Arbitrum
	-32005: rpcLimit, // EIP-1474: limit exceeded; Infura and Chainstack of the rate and of the quota
	-32007: rpcLimit, // QuickNode: so many a second
	-32016: rpcLimit, // Base: over rate limit
	-32029: rpcLimit, // TheRPC, with HTTP 200
	-32090: rpcLimit, // Ankr: too many requests
	-32097: rpcLimit, // public nodes
	-32605: rpcLimit, // BlockVision: rate limit

	402:    rpcQuota, // Infura: the credit of the day
	-32607: rpcQuota, // BlockVision: call limit

	401: rpcDenied, 403: rpcDenied,

	-32002: rpcTrouble, // EIP-1474: not available
	-32600: rpcTrouble, // it did not understand us, or a proxy before it did not
	-32603: rpcTrouble,
	-32700: rpcTrouble,
}

// quotaCodes and rateCodes are errors that sources name by one word, as codeOf spells it. What says that a payer has not enough (insufficient_funds) is none
// of them.
var (
	quotaCodes = set("quota_exceeded", "quota_exhausted", "insufficient_quota", "out_of_credit", "out_of_credits", "insufficient_credit", "insufficient_credits",
		"no_credits", "credit_exhausted", "credits_exhausted", "credit_limit_exceeded", "payment_method_required", "usage_limit_exceeded", "daily_limit_exceeded",
		"monthly_limit_exceeded", "plan_limit_exceeded", "billing_hard_limit_reached")
	rateCodes = set("rate_limit_exceeded", "rate_limited", "rate_limit", "too_many_requests", "throttled")
)

// mailLimitCodes are the replies by which relays say limits, among other things.
var mailLimitCodes = map[int]bool{421: true, 450: true, 451: true, 452: true, 454: true, 550: true, 552: true, 554: true}

func set(words ...string) map[string]bool {
	all := map[string]bool{}
	for _, w := range words {
		all[w] = true
	}
	return all
}

// ofRate says whether words about a limit are about how fast we are.
func ofRate(text string) bool {
	return contains(text, "per second", "/second", "/sec", "per minute", "/minute", "sending rate", "throughput")
}

// ofQuota says whether words about a limit are about all that there is. How fast we are comes first: many say "upgrade" and "credits" of both.
func ofQuota(text string) bool {
	return !ofRate(text) && contains(text, "daily", "monthly", "per day", "per month", "quota", "out of credit", "no credit", "insufficient credit",
		"credits exceeded", "credit limit", "payment required", "past due", "capacity limit")
}

// namesLimit says whether a text is about a limit at all.
func namesLimit(text string) bool {
	return contains(text, "rate limit", "too many requests", "too many connections", "too many messages", "throttl", "request limit reached") || strings.HasPrefix(text, "429 ")
}

// tooMuchAsked says whether one question was too large, which some nodes say by the code of a limit.
func tooMuchAsked(text string) bool {
	return contains(text, "query returned more than", "block range", "response size")
}

func contains(text string, words ...string) bool {
	text = strings.ToLower(text)
	for _, w := range words {
		if strings.Contains(text, w) {
			return true
		}
	}
	return false
}

var enhancedForm = regexp.MustCompile(`(?:^|[^0-9.])[45]\.([0-9]{1,3})\.[0-9]{1,3}(?:[^0-9.]|$)`)

// ofRecipient says whether a reply is about one recipient, by its enhanced code.
func ofRecipient(text string) bool {
	found := enhancedForm.FindStringSubmatch(text)
	return found != nil && (found[1] == "1" || found[1] == "2")
}

// codeOf is the one word by which an error body names itself: the whole value of a member that is for that, or the whole text. Empty: none.
func codeOf(text string) string {
	var body struct {
		Error     json.RawMessage `json:"error"`
		Code      any             `json:"code"`
		Type      any             `json:"type"`
		ErrorType any             `json:"errorType"`
		ErrorCode any             `json:"error_code"`
	}
	if json.Unmarshal([]byte(text), &body) != nil {
		return known(text)
	}
	candidates := []any{body.ErrorType, body.ErrorCode, body.Code, body.Type}
	var inner struct {
		Code any `json:"code"`
		Type any `json:"type"`
	}
	var whole string
	if json.Unmarshal(body.Error, &whole) == nil {
		candidates = append(candidates, whole)
	} else if json.Unmarshal(body.Error, &inner) == nil {
		candidates = append(candidates, inner.Code, inner.Type)
	}
	for _, c := range candidates {
		if word, ok := c.(string); ok && known(word) != "" {
			return known(word)
		}
	}
	return ""
}

// known is a word in the spelling of the tables; empty where it is in none of them.
func known(text string) string {
	word := strings.NewReplacer("-", "_", " ", "_").Replace(strings.ToLower(strings.TrimSpace(text)))
	if quotaCodes[word] || rateCodes[word] {
		return word
	}
	return ""
}
