package source

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

const (
	// slowWait is how long a source rests that limits the rate and does not say for how long.
	slowWait = 5 * time.Second
	// slowMailWait is the same of a mail relay, whose rates are counted by the minute.
	slowMailWait = 30 * time.Second
	// textMax is far above what an error has. What follows is not looked at.
	textMax = 4 << 10
)

// Classify says what an answer means for its source. What its text says counts only where a status, a code or a whole word of an error says already that
// it is about a limit: a text can repeat what some payer has sent.
func Classify(k Kind, r RunsOut, shapes []Shape, a Answer) Verdict {
	a.RetryAfter, a.Text = max(0, a.RetryAfter), a.Text[:min(len(a.Text), textMax)]
	for _, shape := range shapes {
		if shape.is(a) {
			return refused(a, said(k, a)+", a refusal by the configuration")
		}
	}
	switch k {
	case KindMail:
		return classifyMail(a)
	case KindRPC:
		return classifyRPC(r, a)
	case KindFacilitator, KindWebhook:
		return classifyHTTP(k, r, a)
	}
	return Verdict{Kind: Troubled}
}

// is says whether an answer looks like this. A shape of nothing looks like no answer.
func (s Shape) is(a Answer) bool {
	if s.Status == 0 && s.Text == "" {
		return false
	}
	return (s.Status == 0 || s.Status == a.Status) && strings.Contains(strings.ToLower(a.Text), strings.ToLower(s.Text))
}

// said names what came back, without a word of the source's.
func said(k Kind, a Answer) string {
	switch {
	case k == KindMail:
		return fmt.Sprintf("SMTP %d", a.Code)
	case k == KindRPC && a.Code != 0 && a.Status/100 == 2:
		return fmt.Sprintf("JSON-RPC error %d", a.Code)
	}
	return fmt.Sprintf("HTTP %d", a.Status)
}

// refused is that nothing is left, for as long as the source says where that is no short moment.
func refused(a Answer, by string) Verdict {
	v := Verdict{Kind: Refused, Said: by}
	if a.RetryAfter >= outageMin {
		v.Wait = a.RetryAfter
	}
	return v
}

// limited is an answer that says that a limit was met: of the rate, or of all that there is. A short Retry-After is of the rate, a long one is not. Without
// one its words tell, and without such words how the source runs out.
func limited(r RunsOut, a Answer, by string) Verdict {
	switch {
	case a.RetryAfter >= outageMin:
		return refused(a, by)
	case a.RetryAfter > 0:
		return Verdict{Kind: Slowed, Wait: a.RetryAfter, Said: by}
	case ofRate(a.Text):
		return Verdict{Kind: Slowed, Wait: slowWait, Said: by}
	case ofQuota(a.Text) || r == Daily || r == Prepaid:
		return refused(a, by)
	}
	return Verdict{Kind: Slowed, Wait: slowWait, Said: by}
}

func classifyHTTP(k Kind, r RunsOut, a Answer) Verdict {
	by := said(k, a)
	switch {
	case a.Status/100 == 2:
		return Verdict{Kind: Worked}
	case a.Status == http.StatusPaymentRequired:
		return refused(a, by)
	case a.Status == http.StatusUnauthorized:
		return Verdict{Kind: Rejected, Said: by}
	case a.Status == http.StatusTooManyRequests:
		return limited(r, a, by)
	case a.Status >= 400:
		switch word := codeOf(a.Text); {
		case quotaCodes[word]:
			return refused(a, by+" "+word)
		case rateCodes[word]:
			return limited(r, a, by+" "+word)
		}
		// A facilitator may forbid one payment, of a payer that it does not like: that is no reason to ask it nothing more.
		if a.Status == http.StatusForbidden && k != KindFacilitator {
			return Verdict{Kind: Rejected, Said: by}
		}
	}
	return Verdict{Kind: Troubled, Said: by}
}

// classifyRPC looks at the status first: most nodes say a limit by it, and put any code beside it.
func classifyRPC(r RunsOut, a Answer) Verdict {
	if a.Status/100 != 2 {
		if a.Status == http.StatusForbidden && ofQuota(a.Text) {
			return refused(a, said(KindRPC, a))
		}
		return classifyHTTP(KindRPC, r, a)
	}
	by := said(KindRPC, a)
	switch meaning := rpcCodes[a.Code]; {
	case a.Code == 0:
		return Verdict{Kind: Worked}
	case meaning == rpcLimit && tooMuchAsked(a.Text):
		return Verdict{Kind: Worked} // about one question, not about us
	case meaning == rpcLimit, meaning == rpcNone && namesLimit(a.Text):
		return limited(r, a, by)
	case meaning == rpcQuota:
		return refused(a, by)
	case meaning == rpcDenied:
		return Verdict{Kind: Rejected, Said: by}
	case meaning == rpcTrouble:
		return Verdict{Kind: Troubled, Said: by}
	}
	return Verdict{Kind: Worked} // it has looked, and says what is wrong with what we asked
}

// classifyMail knows a full mailbox of the recipient from a quota of ours by the enhanced code (RFC 3463): x.1 is about an address, x.2 about a mailbox.
func classifyMail(a Answer) Verdict {
	by := said(KindMail, a)
	switch {
	case 200 <= a.Code && a.Code <= 399:
		return Verdict{Kind: Worked}
	case a.Code == 530, a.Code == 534, a.Code == 535, a.Code == 538:
		return Verdict{Kind: Rejected, Said: by}
	case !mailLimitCodes[a.Code] || ofRecipient(a.Text):
		return Verdict{Kind: Troubled, Said: by}
	case ofQuota(a.Text):
		return refused(a, by)
	case a.Code < 500 && (ofRate(a.Text) || namesLimit(a.Text)):
		return Verdict{Kind: Slowed, Wait: slowMailWait, Said: by}
	}
	return Verdict{Kind: Troubled, Said: by}
}
