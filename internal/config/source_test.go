package config

import (
	"strings"
	"testing"
	"time"
)

const fullSource = `"metered":true,"runs_out":"prepaid","retry_window":"30m","unit_usd":"0.001","guard":{"floor":5000,"surge":1.5},"budget_url":"https://x.example/billing?a=b",` +
	`"refusals":[{"status":403,"text":"quota"},{"text":"trial is over"},{"status":418}]`

func wantFullSource(t *testing.T, s Source) {
	t.Helper()
	if !s.Metered || s.RunsOut != RunsOutPrepaid || s.RetryWindow != 30*time.Minute || s.UnitUSD.String() != "0.001" || s.Guard != (Guard{5000, 150}) ||
		s.BudgetURL != "https://x.example/billing?a=b" || len(s.Refusals) != 3 || s.Refusals[0] != (Refusal{403, "quota"}) {
		t.Errorf("source %+v", s)
	}
}

func TestLoad_ReadsHowAFacilitatorAndANodeRunOut(t *testing.T) {
	t.Parallel()
	entry := strings.Replace(remoteEntry, `"proof"`, fullSource+`,"proof"`, 1)
	wantFullSource(t, load(t, append(production(t), remoteFile(t, entry))).Facilitators[0].Source)
	plain := load(t, append(production(t), remoteFile(t, remoteEntry))).Facilitators[0].Source
	if plain.RunsOut != RunsOutRate || plain.RetryWindow != time.Hour || plain.Metered || plain.Guard != (Guard{}) {
		t.Errorf("where nothing is said: %+v", plain)
	}

	nodes := strings.Replace(networksText, `["http://127.0.0.1:8545"]`, `["http://127.0.0.1:8545",{"url":"https://node.example/hunter2",`+fullSource+`}]`, 1)
	rpc := load(t, append(production(t), "MARKET_NETWORKS="+writeFile(t, "networks.json", nodes))).Networks[0].RPC
	if len(rpc) != 2 || rpc[0].URL != "http://127.0.0.1:8545" || rpc[1].URL != "https://node.example/hunter2" || rpc[0].Source.RunsOut != RunsOutRate {
		t.Fatalf("nodes %+v", rpc)
	}
	wantFullSource(t, rpc[1].Source)
}

func TestLoad_WhatIsSaidOfASourceIsStrict(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ member, want string }{
		"it runs out in another way":           {`"runs_out":"never"`, ".runs_out"},
		"a window that is no duration":         {`"retry_window":"3600"`, ".retry_window"},
		"a window just below a minute":         {`"retry_window":"59s"`, ".retry_window"},
		"a window of a minute":                 {`"retry_window":"1m"`, ""},
		"a window of a day":                    {`"retry_window":"24h"`, ""},
		"a window just above a day":            {`"retry_window":"24h1s"`, ".retry_window"},
		"a negative price":                     {`"unit_usd":"-1"`, ".unit_usd"},
		"a price with an exponent":             {`"unit_usd":"1e9"`, ".unit_usd"},
		"a guard without a floor":              {`"guard":{"surge":3}`, ".guard.floor"},
		"a floor of nothing":                   {`"guard":{"floor":0}`, ".guard.floor"},
		"a floor for ten calls, not metered":   {`"guard":{"floor":20}`, ""},
		"a floor that nobody means":            {`"guard":{"floor":1000000000001}`, ".guard.floor"},
		"a surge just below one":               {`"guard":{"floor":20,"surge":0.99}`, ".guard.surge"},
		"a surge of one":                       {`"guard":{"floor":20,"surge":1}`, ""},
		"a surge of a hundred":                 {`"guard":{"floor":20,"surge":100}`, ""},
		"a surge just above it":                {`"guard":{"floor":20,"surge":100.01}`, ".guard.surge"},
		"a surge of thousandths":               {`"guard":{"floor":20,"surge":1.001}`, ".guard.surge"},
		"a surge with an exponent":             {`"guard":{"floor":20,"surge":1e1}`, ".guard.surge"},
		"a surge in quotes":                    {`"guard":{"floor":20,"surge":"3"}`, ".guard.surge"},
		"a guard with more":                    {`"guard":{"floor":20,"ceiling":3}`, `unknown field "ceiling"`},
		"a budget at no URL":                   {`"budget_url":"billing"`, ".budget_url"},
		"a budget with a password in its URL":  {`"budget_url":"https://me:hunter2@x.example"`, ".budget_url"},
		"a script as a budget":                 {`"budget_url":"javascript:alert(1)"`, ".budget_url"},
		"a refusal of every good answer":       {`"refusals":[{"status":200}]`, ".refusals[0]"},
		"a refusal of nothing":                 {`"refusals":[{"status":403},{}]`, ".refusals[1]"},
		"a refusal of blanks":                  {`"refusals":[{"text":" "}]`, ".refusals[0]"},
		"a refusal by a text in a good answer": {`"refusals":[{"status":200,"text":"used up"}]`, ""},
		"a refusal by no status":               {`"refusals":[{"status":600,"text":"x"}]`, ".refusals[0].status"},
		"a refusal with more":                  {`"refusals":[{"code":1}]`, `unknown field "code"`},
		"too many refusals":                    {`"refusals":[{"status":400}` + strings.Repeat(`,{"status":400}`, refusalsMax) + `]`, ".refusals"},
		"a refusal by a text that is too long": {`"refusals":[{"text":"` + strings.Repeat("x", refusalTextMax+1) + `"}]`, ".refusals[0].text"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			facilitators := remoteFile(t, strings.Replace(remoteEntry, `"proof"`, tt.member+`,"proof"`, 1))
			nodes := strings.Replace(networksText, `["http://127.0.0.1:8545"]`, `[{"url":"https://node.example/hunter2",`+tt.member+`}]`, 1)
			for at, variable := range map[string]string{
				"facilitators[0]":    facilitators,
				"networks[0].rpc[0]": "MARKET_NETWORKS=" + writeFile(t, "networks.json", nodes),
			} {
				_, err := Load(append(production(t), variable))
				if tt.want == "" {
					if err != nil {
						t.Errorf("%s: %v", at, err)
					}
					continue
				}
				want := tt.want
				if strings.HasPrefix(want, ".") {
					want = at + want
				}
				if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "hunter2") {
					t.Errorf("%s: %v, want one line that says %q", at, err, want)
				}
			}
		})
	}
}

// A facilitator is asked for two units a call, so the last tenth of its cap has to have room for one. A node is asked for one unit at a time.
func TestLoad_AFloorHasRoomForACallInItsLastTenth(t *testing.T) {
	t.Parallel()
	const low = `"guard":{"floor":19}`
	_, err := Load(append(production(t), remoteFile(t, strings.Replace(remoteEntry, `"proof"`, low+`,"proof"`, 1))))
	if err == nil || !strings.Contains(err.Error(), "facilitators[0].guard.floor: got 19") || !strings.Contains(err.Error(), "a call sets two aside") {
		t.Errorf("%v, want one line that says why 19 is too low", err)
	}
	nodes := strings.Replace(networksText, `["http://127.0.0.1:8545"]`, `[{"url":"https://node.example/v2",`+low+`}]`, 1)
	if _, err := Load(append(production(t), "MARKET_NETWORKS="+writeFile(t, "networks.json", nodes))); err != nil {
		t.Errorf("a node: %v", err)
	}
}

func TestLoad_ALocalFacilitatorDoesNotRunOut(t *testing.T) {
	t.Parallel()
	for _, member := range strings.Split(`"metered":true|"runs_out":"prepaid"|"retry_window":"1h"|"unit_usd":"0.1"|"guard":{"floor":5}|"budget_url":"https://x.example"|"refusals":[{"status":403}]`, "|") {
		_, err := Load(append(production(t), remoteFile(t, `{"name":"own","kind":"local","networks":["eip155:84532"],"proof":"receipt",`+member+`}`)))
		if err == nil || !strings.Contains(err.Error(), "a local facilitator does not run out") {
			t.Errorf("%s: %v", member, err)
		}
	}
}

func TestLoad_ANodeIsAURLOrAnObjectWithOne(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ rpc, want string }{
		"an object without a URL":  {`[{"metered":true}]`, "networks[0].rpc[0]: expected an http(s) URL"},
		"an object with more":      {`[{"url":"https://node.example","key":"hunter2"}]`, `unknown field "key"`},
		"a number":                 {`[7]`, "rpc"},
		"nothing":                  {`[null]`, "networks[0].rpc[0]: expected an http(s) URL"},
		"the second one is no URL": {`["https://node.example",""]`, "networks[0].rpc[1]: expected an http(s) URL"},
		"nine of them":             {`["https://a.example"` + strings.Repeat(`,"https://a.example"`, rpcMax) + `]`, "networks[0].rpc: got 9"},
	} {
		text := strings.Replace(networksText, `["http://127.0.0.1:8545"]`, tt.rpc, 1)
		_, err := Load(append(production(t), "MARKET_NETWORKS="+writeFile(t, "networks.json", text)))
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v, want one that says %q", name, err, tt.want)
		}
	}
}
