package config

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"market/internal/plan"
)

func plansSetting(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "plans.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return "MARKET_PLANS=" + path
}

const starter = `{"name":"starter","title":"Starter","limits":{"listings":1,"endpoints_per_listing":2,"trial_calls_per_day":0,"probe_every_seconds":3600,"fee_bps":900,"priority":0,"answer_retention_seconds":3600,"payout_threshold_cents":2500}}`

func TestLoad_WithoutAFileTheFirstPlanHasTheFeeAndTheRetentionOfTheConfiguration(t *testing.T) {
	t.Parallel()
	c := load(t, append(production(t), "MARKET_FEE_BPS=123", "MARKET_ANSWER_RETENTION=36h"))
	if free := c.Plans.Of(""); free.Name != "free" || free.FeeBPS != 123 || free.AnswerRetention != 36*time.Hour {
		t.Errorf("the first plan is %+v", free)
	}
}

// What the API tells of the plans can be put into the file as it is.
func TestLoad_ReadsThePlansInTheUnitsOfTheAPI(t *testing.T) {
	t.Parallel()
	type entry struct {
		Name   string             `json:"name"`
		Title  string             `json:"title"`
		Limits map[plan.Key]int64 `json:"limits"`
	}
	want := plan.BuiltIn(500, 24*time.Hour)
	var entries []entry
	for _, p := range want {
		e := entry{p.Name, p.Title, map[plan.Key]int64{}}
		for _, f := range plan.Fields() {
			e.Limits[f.Key] = f.Of(p.Limits)
		}
		entries = append(entries, e)
	}
	text, err := json.Marshal(map[string]any{"plans": entries})
	if err != nil {
		t.Fatal(err)
	}
	c := load(t, append(production(t), plansSetting(t, string(text))))
	if len(c.Plans) != len(want) {
		t.Fatalf("%d plans, want %d", len(c.Plans), len(want))
	}
	for i := range want {
		if c.Plans[i] != want[i] {
			t.Errorf("plan %d is %+v, want %+v", i, c.Plans[i], want[i])
		}
	}
}

func TestLoad_SaysEverythingThatIsWrongWithThePlansFile(t *testing.T) {
	t.Parallel()
	change := func(old, now string) string { return strings.Replace(starter, old, now, 1) }
	for name, tt := range map[string]struct {
		text string
		want []string
	}{
		"no plan":                    {`{"plans":[]}`, []string{"plans: got 0, expected 1 to 16"}},
		"too many":                   {`{"plans":[` + strings.Repeat(starter+",", 16) + starter + `]}`, []string{"plans: got 17, expected 1 to 16"}},
		"something else":             {`[]`, []string{"cannot unmarshal array"}},
		"an unknown member":          {`{"plans":[` + change(`"title"`, `"label"`) + `]}`, []string{`unknown field "label"`}},
		"a limit that there is not":  {`{"plans":[` + change(`"listings"`, `"listing"`) + `]}`, []string{`plans[0].limits.listing: got "listing", expected a limit that there is`, `plans[0].limits.listings: got "nothing", expected 1 to 10000`}},
		"a limit that is no number":  {`{"plans":[` + change(`:900`, `:"5%"`) + `]}`, []string{"cannot unmarshal string"}},
		"part of a basis point":      {`{"plans":[` + change(`:900`, `:9.5`) + `]}`, []string{"cannot unmarshal number 9.5"}},
		"a fee above the price":      {`{"plans":[` + change(`:900`, `:10001`) + `]}`, []string{"plans[0].limits.fee_bps: got 10001, expected 0 to 10000"}},
		"a name that is no name":     {`{"plans":[` + change(`"starter"`, `"Starter Plan"`) + `]}`, []string{"plans[0].name: got Starter Plan, expected"}},
		"a name twice":               {`{"plans":[` + starter + `,` + starter + `]}`, []string{"plans[1].name: got starter, expected a name that is not taken"}},
		"a later plan that is worse": {`{"plans":[` + starter + `,` + strings.NewReplacer("starter", "big", `"fee_bps":900`, `"fee_bps":901`, `"listings":1`, `"listings":9`).Replace(starter) + `]}`, []string{"plans[1].limits.fee_bps: got 901, expected no worse than 900, which plan starter before it has"}},
		"several things at once": {`{"plans":[` + change(`:900`, `:-1`) + `,` + change(`"listings":1,`, ``) + `]}`,
			[]string{"plans[0].limits.fee_bps: got -1", `plans[1].limits.listings: got "nothing"`, "plans[1].name: got starter, expected a name that is not taken"}},
		"a bad name beside a bad limit": {`{"plans":[` + strings.Replace(change(`:900`, `:10001`), `"Starter"`, `"<b>"`, 1) + `,` +
			strings.NewReplacer("starter", "Big Plan", `"probe_every_seconds":3600`, `"probe_every_seconds":1`).Replace(starter) + `]}`,
			[]string{"plans[0].limits.fee_bps: got 10001", "plans[0].title: got <b>", "plans[1].name: got Big Plan", "plans[1].limits.probe_every_seconds: got 1, expected 180 to 3600"}},
	} {
		_, err := Load(append(production(t), plansSetting(t, tt.text)))
		if err == nil {
			t.Errorf("%s: it is taken", name)
			continue
		}
		if strings.Count(err.Error(), "plans[") > len(tt.want) {
			t.Errorf("%s: %v, want no more than %q", name, err, tt.want)
		}
		for _, want := range tt.want {
			if !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "MARKET_PLANS") {
				t.Errorf("%s: %v, want %q", name, err, want)
			}
		}
	}
}
