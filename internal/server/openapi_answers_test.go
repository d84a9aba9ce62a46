package server

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/labstack/echo/v4"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"market/internal/audit"
	"market/internal/call"
	"market/internal/capacity"
	"market/internal/catalog"
	"market/internal/chain"
	"market/internal/delivery"
	"market/internal/money"
	"market/internal/payment"
	"market/internal/refund"
	"market/internal/refusal"
	"market/internal/strikes"
)

// describedAs says whether an answer is one that the document describes for an operation: its status, its type, its form.
func (d document) describedAs(t *testing.T, what, path, method string, answer *httptest.ResponseRecorder) {
	t.Helper()
	pointer, response, err := d.response(path, method, answer.Code)
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	content, _ := response["content"].(map[string]any)
	mime := answer.Header().Get("Content-Type")
	if content[mime] == nil {
		t.Errorf("%s: %d comes as %q, the document says %v", what, answer.Code, mime, content)
		return
	}
	body, err := jsonschema.UnmarshalJSON(answer.Body)
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	if err := d.check(join(pointer+"/content", mime)+"/schema", body); err != nil {
		t.Errorf("%s: %v", what, err)
	}
	headers, _ := response["headers"].(map[string]any)
	for _, name := range []string{headerCall, headerOutcome, payment.HeaderRequired, payment.HeaderResponse, payment.HeaderV1Response, "Retry-After", "Allow", "Location", "ETag"} {
		if answer.Header().Get(name) != "" && headers[name] == nil {
			t.Errorf("%s: %d has the header %s, which the document does not name", what, answer.Code, name)
		}
	}
}

var (
	testAsset = chain.Asset{Address: common.HexToAddress("0x036CbD53842c5426634e7929541eC2318f3dCF7e"), Symbol: "USDC", Decimals: 6,
		EIP712Name: "USDC", EIP712Version: "2"}
	testNetwork = chain.Network{ID: "eip155:84532", ChainID: 84532, V1Name: "base-sepolia", Assets: []chain.Asset{testAsset}}
	testPayer   = common.HexToAddress("0x0a3Dad9d5816792c90a168d63574DAcb09aCF6FB")
)

func testChallenge(t *testing.T) payment.Challenge {
	t.Helper()
	offer, err := payment.NewOffer(testNetwork, testAsset, money.FromUnits(2000), common.HexToAddress("0x01"), 120, 1)
	if err != nil {
		t.Fatal(err)
	}
	c, err := payment.NewChallenge(payment.Resource{URL: "https://shop.example/s/weather/v1/current", MimeType: "application/json"}, []payment.Offer{offer})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestOpenAPI_EveryAnswerToACallIsDescribed(t *testing.T) {
	t.Parallel()
	d := openDocument(t)
	challenge := testChallenge(t)
	paid := &delivery.Payment{Network: testNetwork.ID, Asset: testAsset.Address, Payer: testPayer, Amount: money.FromUnits(2000),
		Transaction: common.HexToHash("0x02"), Proved: true}
	receipt := &payment.SettleResponse{Success: true, Transaction: paid.Transaction.Hex(), Network: testNetwork.ID, Payer: testPayer.Hex()}
	for _, reason := range call.Reasons() {
		status := statusOf[reason]
		if status < 400 {
			continue
		}
		a := delivery.Answer{Call: call.NewID(), Reason: reason, Detail: "why", Charged: delivery.ChargedNo,
			Fields: []refusal.Field{{Name: "/a", Message: "is wrong"}}, Payment: paid, ServiceAnswer: []byte(`not JSON`),
			Refund: &delivery.Refund{Network: paid.Network, Asset: paid.Asset, To: paid.Payer, Amount: paid.Amount, State: refund.StateParked, Why: "why"}}
		if row, ends := call.RowOf(reason); ends {
			a.Outcome = row.Outcome
		}
		if status == http.StatusPaymentRequired || reason == call.PaymentMalformed {
			a.Challenge, a.Code = &challenge, payment.CodeOf(reason)
		}
		if status != http.StatusBadRequest { // what is answered 400 was not read, so no settlement was tried
			a.Receipt = receipt
		}
		if status != http.StatusBadRequest && status != http.StatusPaymentRequired { // waiting helps neither
			a.RetryAfter = time.Second
		}
		for _, version := range []payment.Version{payment.V1, payment.V2} {
			receipt.Version, receipt.Network = version, version.NetworkName(testNetwork)
			answer := httptest.NewRecorder()
			if err := newTestServer().writeAnswer(echo.New().NewContext(httptest.NewRequest(http.MethodPost, "/", nil), answer), a); err != nil {
				t.Fatal(err)
			}
			d.describedAs(t, string(reason), "/s/{service}/{path}", http.MethodPost, answer)
			for _, name := range []string{payment.HeaderResponse, payment.HeaderV1Response} {
				if got, want := answer.Header().Get(name) != "", a.Receipt != nil && name == receipt.Header(); got != want {
					t.Errorf("%s in version %d: %s is there: %v, want %v", reason, version, name, got, want)
				}
			}
		}
	}
}

func TestOpenAPI_X402HeadersAreWhatItSays(t *testing.T) {
	t.Parallel()
	d := openDocument(t)
	required := testChallenge(t).Header(payment.Unpaid)
	read, err := payment.DecodeChallenge(required)
	if err != nil {
		t.Fatal(err)
	}
	ofKey, err := chain.ParseSignature(append(bytes.Repeat([]byte{1}, 64), 27))
	if err != nil {
		t.Fatal(err)
	}
	signature, err := payment.EncodePayload(read.Accepts[0], read.Resource, chain.Signed{Signature: ofKey, Authorization: chain.Authorization{From: testPayer}})
	if err != nil {
		t.Fatal(err)
	}
	for schema, header := range map[string]string{
		"PaymentRequired":  required,
		"PaymentSignature": signature,
		"XPayment": base64.StdEncoding.EncodeToString([]byte(`{"x402Version":1,"scheme":"exact","network":"base-sepolia","payload":` +
			payloadOf(t, signature) + `}`)),
		"PaymentResponse": payment.EncodeResponse(payment.SettleResponse{ErrorReason: payment.CodePending, Network: testNetwork.ID}),
	} {
		text, err := base64.StdEncoding.DecodeString(header)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.fits(schema, json.RawMessage(text)); err != nil {
			t.Errorf("%s: %v", schema, err)
		}
	}
}

// payloadOf cuts the signed part out of a payment header.
func payloadOf(t *testing.T, header string) string {
	t.Helper()
	text, err := base64.StdEncoding.DecodeString(header)
	if err != nil {
		t.Fatal(err)
	}
	var p struct{ Payload json.RawMessage }
	if err := json.Unmarshal(text, &p); err != nil {
		t.Fatal(err)
	}
	return string(p.Payload)
}

func TestOpenAPI_EveryAnswerOfTheAPIIsDescribed(t *testing.T) {
	t.Parallel()
	d := openDocument(t)
	const token = "a-token-of-the-tests"
	for what, tt := range map[string]struct {
		method, path, body, token, described string
		status                               int
	}{
		"the index":                  {"GET", "/", "", "", "/", 200},
		"a path that sells nothing":  {"GET", "/s/No-One/v1", "", "", "/s/{service}/{path}", 404},
		"a limit out of range":       {"GET", "/api/v1/services?limit=0", "", "", "/api/v1/services", 400},
		"an unknown parameter":       {"GET", "/api/v1/services?page=2", "", "", "/api/v1/services", 400},
		"a search for an odd state":  {"GET", "/api/v1/services?status=odd", "", "", "/api/v1/services", 400},
		"the plans":                  {"GET", "/api/v1/plans", "", "", "/api/v1/plans", 200},
		"the rules":                  {"GET", "/api/v1/rules", "", "", "/api/v1/rules", 200},
		"a search for nothing":       {"GET", "/api/v1/calls", "", "", "/api/v1/calls", 400},
		"no call":                    {"GET", "/api/v1/calls/x", "", "", "/api/v1/calls/{id}", 404},
		"no token":                   {"GET", "/api/v1/admin/strikes", "", "", "/api/v1/admin/strikes", 401},
		"another token":              {"POST", "/api/v1/services", "{}", "guess", "/api/v1/services", 401},
		"a listing without a member": {"POST", "/api/v1/services", "{}", token, "/api/v1/services", 422},
		"a listing that is too long": {"POST", "/api/v1/services", strings.Repeat(" ", bodyMax+1), token, "/api/v1/services", 413},
		"a patch that is too long":   {"PATCH", "/api/v1/services/x/endpoints/1", strings.Repeat(" ", bodyMax+1), token, "/api/v1/services/{slug}/endpoints/{id}", 413},
		"another patch like that":    {"PATCH", "/api/v1/services/x", strings.Repeat(" ", bodyMax+1), token, "/api/v1/services/{slug}", 413},
		"no reason":                  {"POST", "/api/v1/admin/services/x/suspend", "{}", token, "/api/v1/admin/services/{slug}/suspend", 422},
		"a reason that is too long":  {"POST", "/api/v1/admin/services/x/relist", `{"reason":"` + strings.Repeat("x", 501) + `"}`, token, "/api/v1/admin/services/{slug}/relist", 422},
		"a service left for nothing": {"POST", "/api/v1/admin/services/x/uphold", "{}", token, "/api/v1/admin/services/{slug}/uphold", 422},
		"an appeal without a text":   {"POST", "/api/v1/services/x/appeals", "{}", token, "/api/v1/services/{slug}/appeals", 422},
		"an appeal of nobody":        {"POST", "/api/v1/services/x/appeals", "{}", "", "/api/v1/services/{slug}/appeals", 401},
		"an odd page of appeals":     {"GET", "/api/v1/services/x/appeals?limit=101", "", token, "/api/v1/services/{slug}/appeals", 400},
		"a page after none of ours":  {"GET", "/api/v1/services/x/appeals?cursor=x", "", token, "/api/v1/services/{slug}/appeals", 400},
		"a void of no id":            {"POST", "/api/v1/admin/strikes/x/void", "{}", token, "/api/v1/admin/strikes/{id}/void", 404},
		"a void for no reason":       {"POST", "/api/v1/admin/strikes/01a229ef-1156-7b25-96a4-01599b66704c/void", "{}", token, "/api/v1/admin/strikes/{id}/void", 422},
		"an uphold of nobody":        {"POST", "/api/v1/admin/strikes/x/uphold", "{}", "", "/api/v1/admin/strikes/{id}/uphold", 401},
		"an odd page of the audit":   {"GET", "/api/v1/admin/audit?limit=0", "", token, "/api/v1/admin/audit", 400},
		"an odd page of notices":     {"GET", "/api/v1/admin/notices?limit=0", "", token, "/api/v1/admin/notices", 400},
		"notices after none of ours": {"GET", "/api/v1/admin/notices?cursor=x", "", token, "/api/v1/admin/notices", 400},
		"notices without a token":    {"GET", "/api/v1/admin/notices", "", "", "/api/v1/admin/notices", 401},
		"a test by no channel":       {"POST", "/api/v1/admin/notices/test", "", token, "/api/v1/admin/notices/test", 409},
		"a test of another form":     {"POST", "/api/v1/admin/notices/test", `{"to":"x"}`, token, "/api/v1/admin/notices/test", 422},
		"a test by nobody":           {"POST", "/api/v1/admin/notices/test", "", "", "/api/v1/admin/notices/test", 401},
		"sources where none is":      {"GET", "/api/v1/admin/sources", "", token, "/api/v1/admin/sources", 200},
		"sources without a token":    {"GET", "/api/v1/admin/sources", "", "", "/api/v1/admin/sources", 401},
		"a try of no source":         {"POST", "/api/v1/admin/sources/facilitator/x/try", "", token, "/api/v1/admin/sources/{name}/try", 404},
		"a try by its escaped name":  {"POST", "/api/v1/admin/sources/facilitator%2Fx/try", `{"reason":"why"}`, token, "/api/v1/admin/sources/{name}/try", 404},
		"a try for an empty reason":  {"POST", "/api/v1/admin/sources/mail/try", `{"reason":""}`, token, "/api/v1/admin/sources/{name}/try", 422},
		"no try of a source":         {"POST", "/api/v1/admin/sources/mail", "", token, "/api/v1/admin/sources/{name}/try", 404},
		"a state that is none":       {"GET", "/api/v1/admin/services?state=gone", "", token, "/api/v1/admin/services", 400},
		"revisions without a token":  {"GET", "/api/v1/services/x/revisions", "", "", "/api/v1/services/{slug}/revisions", 401},
		"figures without a token":    {"GET", "/api/v1/services/x/figures", "", "", "/api/v1/services/{slug}/figures", 401},
		"a header of ours":           {"PUT", "/api/v1/services/x/headers", `{"Market-Call":"x"}`, token, "/api/v1/services/{slug}/headers", 422},
		"a header that is a list":    {"PATCH", "/api/v1/services/x/headers", `{"X-Api-Key":[]}`, token, "/api/v1/services/{slug}/headers", 422},
		"a wait below nothing":       {"POST", "/api/v1/services/x/secret", `{"after_seconds":-1}`, token, "/api/v1/services/{slug}/secret", 422},
	} {
		r := httptest.NewRequest(tt.method, tt.path, strings.NewReader(tt.body))
		if tt.token != "" {
			r.Header.Set("Authorization", "Bearer "+tt.token)
		}
		s := newTestServer()
		s.catalog = catalog.New(time.Now, 0)
		answer := httptest.NewRecorder()
		s.Public().Handler.ServeHTTP(answer, r)
		if answer.Code != tt.status {
			t.Errorf("%s: %d %s, want %d", what, answer.Code, answer.Body, tt.status)
			continue
		}
		d.describedAs(t, what, tt.described, tt.method, answer)
	}
}

func TestOpenAPI_RecordsFit(t *testing.T) {
	t.Parallel()
	d := openDocument(t)
	s := newTestServer()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	id := uuid.Must(uuid.NewV7())
	paid := delivery.Record{Call: id, State: call.StateFailed, Outcome: call.Failed, Reason: call.Upstream5xx, Party: call.Service, Asked: true,
		Service: "weather", Method: "POST", Path: "/v1/current", Status: 500, Network: testNetwork.ID, Asset: testAsset.Address, Payer: testPayer,
		Amount: money.FromUnits(2000), Transaction: common.HexToHash("0x02"), Proved: true, Created: at, AskedAt: at, Recorded: at,
		Refund: &refund.Refund{State: refund.StateConfirmed, Transaction: common.HexToHash("0x03")}}
	open := paid
	open.State, open.Outcome, open.Reason, open.Party, open.Refund, open.Status, open.Recorded = call.Asked, "", "", "", nil, 0, time.Time{}
	service := catalog.Service{Slug: "weather", Name: "Weather", BaseURL: "https://api.weather.example", State: catalog.Listed, StateCause: catalog.CauseCreated, StateReason: "created",
		BaseURLSince: at, Revision: 1, Probe: catalog.Probe{Method: "GET", Path: "/healthz"}, Capacity: capacity.Limit{Rate: 25, Places: 3}, StateSince: at, CreatedAt: at, Endpoints: []*catalog.Endpoint{{ID: id, Method: "POST",
			Path: "/v1/current", MIMEType: "application/json", InputSchema: json.RawMessage(`{"type":"object"}`), Timeout: time.Second}}}
	signed := func(s payment.Statement) *payment.Signed {
		k, err := chain.ParseKey(strings.Repeat("1", 64))
		if err != nil {
			t.Fatal(err)
		}
		receipt, err := payment.NewNotary(k).SignFor(k.Address(), s)
		if err != nil {
			t.Fatal(err)
		}
		return receipt
	}
	withReceipt := s.callView(paid)
	withReceipt.Receipt = signed(payment.OutcomeReceipt{Version: 1, Network: testNetwork.ID, ResourceURL: "https://shop.example/s/weather/v1/current",
		Payer: testPayer.Hex(), IssuedAt: uint64(at.Unix()), Call: id.String(), Outcome: string(call.Failed), Reason: string(call.Upstream5xx), Amount: "2000",
		Asset: testAsset.Address.Hex(), RefundState: payment.RefundOwed, RefundNonce: common.HexToHash("0x04").Hex()})
	response := payment.SettleResponse{Success: true, Network: testNetwork.ID}.WithReceipt(withReceipt.Receipt)
	strike, summary := testStrike(id, at)
	for what, tt := range map[string]struct {
		schema string
		value  any
	}{
		"a call with a receipt": {"Call", withReceipt},
		"a receipt of what was served": {"SignedReceipt", signed(payment.Receipt{Version: 1, Network: testNetwork.ID, ResourceURL: "https://shop.example/s/x",
			Payer: testPayer.Hex(), IssuedAt: uint64(at.Unix())})},
		"a settlement with a receipt": {"PaymentResponse", response},
		"a call under way":            {"Call", s.callView(open)},
		"a refunded call":             {"Call", s.callView(paid)},
		"a refusal that claimed none": {"Call", s.callView(delivery.Record{Call: id, Outcome: call.Refused, Reason: call.NotLive, Party: call.Service, Recorded: at})},
		"a service":                   {"Service", s.serviceView(&service)},
		"strikes of an admin":         {"StrikePage", strikePage{Items: []strikeView{strikeViewOf("weather", strike, true)}, Services: []summaryView{summaryViewOf(summary, []strikes.Strike{strike})}, Total: 1}},
		"strikes of a provider": {"ServiceStrikes", serviceStrikesView{Summary: summaryViewOf(summary, []strikes.Strike{strike}), Appeals: []appealView{}, Items: []strikeView{strikeViewOf("weather", strike, false)},
			Delistings: []delistingView{delistingViewOf(strikes.Delisting{ID: id, At: at, Verdict: strikes.Holds, From: "listed", Limit: 3, Window: time.Hour,
				Needed: 2, Open: 3, Sources: 1, Deciding: id})}}},
		"a decision": {"Decision", decisionViewOf(delivery.Decision{Action: audit.Void, Strike: &id, Service: "weather", At: at, By: catalog.AdminToken, Reason: "why",
			Before: delivery.Case{State: catalog.Delisted, Counting: 3, Strikes: map[uuid.UUID]strikes.State{id: strikes.Open}, CooldownUntil: &at},
			After:  delivery.Case{State: catalog.Listed, Counting: 2, Strikes: map[uuid.UUID]strikes.State{id: strikes.Voided}}})},
		"an entry of the audit": {"AuditPage", map[string]any{"next_cursor": "", "items": []auditView{auditViewOf(audit.Entry{ID: 1, At: at, Actor: "admin", By: "admin token",
			Action: audit.Relist, Subject: audit.Service("weather"), Slug: "weather", Reason: "why", Before: json.RawMessage(`{}`), After: json.RawMessage(`{}`)})}}},
		"an appeal that was answered": {"AppealPage", map[string]any{"next_cursor": "", "items": []appealView{appealViewOf(delivery.Appeal{ID: id, Strike: id, At: at,
			By: catalog.AdminToken, Text: "no", Answer: &delivery.Answered{Action: audit.Uphold, At: at, By: "admin token", Reason: "yes"}})}}},
	} {
		if err := d.fits(tt.schema, tt.value); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}
