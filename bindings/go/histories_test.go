package waybill_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"waybill.dev/go"
)

// The histories of evidence.jsonl through Go, each a test of its name. tests/replay/history_player.cc says
// what their lines mean; this plays those that the file has.
func TestEvidenceHistories(t *testing.T) {
	const path = "../../tests/fixtures/histories/evidence.jsonl"
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("no fixtures: the package is outside its tree")
	}
	must(t, err)
	defer f.Close()
	type history struct {
		name  string
		rules waybill.Rules
		lines []object
	}
	var histories []history
	let := map[string]any{}
	scanner := bufio.NewScanner(f)
	scanner.Buffer(nil, 16<<20)
	for scanner.Scan() {
		var line object
		must(t, json.Unmarshal(scanner.Bytes(), &line))
		if names, ok := line["let"].(object); ok {
			for name, value := range names {
				let["$"+name] = meant(let, value)
			}
			continue
		}
		line = meant(let, line).(object)
		if line["op"] == "case" {
			rules, err := waybill.ParseRules(line.text("rules"))
			must(t, err)
			histories = append(histories, history{name: line.text("case"), rules: rules})
			continue
		}
		last := &histories[len(histories)-1]
		last.lines = append(last.lines, line)
	}
	must(t, scanner.Err())
	for _, h := range histories {
		t.Run(h.name, func(t *testing.T) {
			n := newNode(t, h.rules)
			for i, line := range h.lines {
				n.play(i+1, line)
			}
		})
	}
}

// node is the node of one history.
type node struct {
	*testing.T
	scratch string
	now     time.Time
	boot    waybill.BootTime
	boots   byte
	store   *waybill.Store
	options waybill.Options
	how     []waybill.ChangeOption
	tokens  map[string]waybill.ListToken // "": the last one
	pulls   map[string]waybill.PullID
	commits uint64
}

func newNode(t *testing.T, rules waybill.Rules) *node {
	n := &node{
		T: t, scratch: scratch(t), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), boots: 1,
		boot:   waybill.BootTime{BootID: [16]byte{1}, Since: 1_000_000 * time.Second},
		tokens: map[string]waybill.ListToken{}, pulls: map[string]waybill.PullID{},
	}
	n.options = waybill.Options{
		Rules:     rules,
		Directory: filepath.Join(n.scratch, "store"), Witness: waybill.WitnessAt(filepath.Join(n.scratch, "witness")),
		MapBytes: 64 << 20, Clock: waybill.NewManualClock(n.now), BootClock: waybill.NewManualBootClock(n.boot),
	}
	t.Cleanup(func() { n.store.Close() })
	return n
}

func (n *node) play(number int, line object) {
	n.Helper()
	for field := range line {
		if !slices.Contains(fieldsOfLines, field) {
			n.Fatalf("line %d of the history: the field %q is not known", number, field)
		}
	}
	got := n.do(line)
	text, err := json.Marshal(got)
	must(n.T, err)
	text = []byte(strings.ReplaceAll(string(text), n.scratch, "DIR"))
	var plain any
	must(n.T, json.Unmarshal(text, &plain))
	got = objects(plain)
	want, answered := line["answer"]
	if answered && !matches(want, got) || !answered && isError(got) {
		n.Errorf("line %d of the history, %v\nwant %v\ngot  %s", number, line, want, text)
	}
}

var fieldsOfLines = strings.Fields(`op answer policy allow preloadedOnly shortNames grace window rules onNode preloaded
	continuesPulls gap mapBytes image imageRef handler secrets credentials credentialMapping as pull entry how count ahead token images many
	complete source reason names adopt inUse allowEmpty dryRun handlers folder key content path seconds bootId to schema`)

func (n *node) setClocks() {
	n.options.Clock.Set(n.now)
	n.options.BootClock.Set(n.boot)
}

func (n *node) do(line object) any {
	switch op := line.text("op"); op {
	case "file":
		directory := filepath.Join(n.scratch, "kubelet", "image_manager", line.text("folder"))
		must(n.T, os.MkdirAll(directory, 0o700))
		must(n.T, os.WriteFile(filepath.Join(directory, "sha256-"+hexSHA256(line.text("key"))), []byte(line.text("content")), 0o600))
	case "write":
		path := filepath.Join(n.scratch, line.text("path"))
		must(n.T, os.RemoveAll(path))
		if line["content"] != nil {
			must(n.T, os.WriteFile(path, []byte(line.text("content")), 0o600))
		}
	case "close":
		n.close()
	case "advance", "jump":
		passed := time.Duration(line.number("seconds")) * time.Second
		n.now = n.now.Add(passed)
		if op == "advance" && passed > 0 {
			n.boot.Since += passed
		}
		n.setClocks()
	case "reboot":
		n.close()
		n.boots++
		n.boot = waybill.BootTime{BootID: [16]byte{n.boots}}
		if line["bootId"] == false {
			n.boot.BootID = [16]byte{}
		}
		n.setClocks()
	case "migrate":
		n.close()
		_, err := waybill.Migrate(context.Background(), waybill.MigrateOptions{
			Directory: n.options.Directory, To: uint32(line.number("to")), AcceptLoss: true, MapBytes: n.options.MapBytes, Clock: n.options.Clock,
		})
		return outcome(err)
	case "restore":
		return n.restore()
	case "open":
		return n.open(line)
	default:
		if n.store == nil {
			if got := n.open(object{"onNode": []any{}}); n.store == nil {
				n.Fatal(got)
			}
		}
		return n.call(op, line)
	}
	return "done"
}

func (n *node) close() {
	if n.store != nil {
		must(n.T, n.store.Close())
		n.store = nil
	}
}

func (n *node) open(line object) any {
	n.close()
	o := &n.options
	if rules, there := line["rules"]; there {
		var err error
		o.Rules, err = waybill.ParseRules(rules.(string))
		must(n.T, err)
	}
	if policy, there := line["policy"]; there {
		mode, err := waybill.ParseVerificationMode(policy.(string))
		must(n.T, err)
		scope := waybill.AllowlistAnyImage
		if line.flag("preloadedOnly") {
			scope = waybill.AllowlistPreloadedOnly
		}
		o.Policy, err = waybill.NewVerificationPolicy(mode, line.texts("allow"), scope)
		must(n.T, err)
	}
	o.Evidence.Remember = -1 // the answers tell what a list deletes
	if names, there := line["shortNames"]; there {
		var err error
		o.Evidence.ShortNames, err = waybill.ParseShortNames(names.(string))
		must(n.T, err)
	}
	if _, there := line["grace"]; there {
		o.Evidence.Grace = time.Duration(line.number("grace")) * time.Second
	}
	if _, there := line["window"]; there {
		o.Evidence.Window = time.Duration(line.number("window")) * time.Second
	}
	if _, there := line["mapBytes"]; there {
		o.MapBytes = uint64(line.number("mapBytes"))
	}
	o.ImagesOnNode, o.Preloaded = line.images("onNode"), line.images("preloaded")
	o.ContinuesPulls, o.AllowEmpty = line.flag("continuesPulls"), line["allowEmpty"] != false
	kubelet := filepath.Join(n.scratch, "kubelet")
	if _, err := os.Stat(kubelet); err == nil {
		o.KubeletDirectory = kubelet
	}
	o.Gap = map[any]waybill.Gap{"yes": waybill.GapYes, "no": waybill.GapNo}[line["gap"]]
	store, err := waybill.Open(context.Background(), *o)
	if err != nil {
		return outcome(err)
	}
	n.store = store
	return recoveryObject(store.RecoveryReport())
}

// restore puts the newest backup of the newest schema back.
func (n *node) restore() any {
	n.close()
	backups, err := waybill.ListBackups(n.options.Directory)
	must(n.T, err)
	at := slices.IndexFunc(backups, func(b waybill.Backup) bool { return b.SchemaVersion == waybill.NewestSchema() })
	if at < 0 {
		n.Fatalf("no backup of schema %d", waybill.NewestSchema())
	}
	report, err := waybill.Restore(context.Background(), waybill.RestoreOptions{
		Directory: n.options.Directory, Backup: backups[at].Path, MapBytes: n.options.MapBytes, Clock: n.options.Clock,
	})
	if err != nil {
		return outcome(err)
	}
	return object{"records": report.Records, "withoutCredentials": report.RecordsWithoutCredentials}
}

func (n *node) call(op string, line object) any {
	n.how = nil
	if line["allowEmpty"] != false {
		n.how = append(n.how, waybill.AllowEmpty)
	}
	if line.flag("dryRun") {
		n.how = append(n.how, waybill.DryRun)
	}
	copy := waybill.ImageCopy{Image: line.text("image"), ImageRef: line.text("imageRef"), RuntimeHandler: line.text("handler")}
	switch op {
	case "check", "ensure":
		return n.ask(op, copy, line)
	case "intent":
		id, err := n.store.RecordPullIntent(copy)
		if name, named := line["as"]; named && err == nil {
			n.pulls[name.(string)] = id
		}
		return outcome(err)
	case "pull", "pulled":
		return n.pulled(op, copy, line)
	case "failed":
		return outcome(n.store.RecordImagePullFailed(copy, failureIn(line), n.pull(line)))
	case "manyPulls":
		for i := range line.number("count") {
			image := waybill.ImageCopy{Image: fmt.Sprintf("registry.example.com/many/%d:v1", i)}
			id, err := n.store.RecordPullIntent(image)
			must(n.T, err)
			must(n.T, n.store.RecordImagePullFailed(image, failureIn(line), id))
		}
		return "done"
	case "record":
		record, err := n.store.GetRecord(copy)
		return answerOr(err, func() any { return n.record(record) })
	case "putRecord":
		record := waybill.ImagePulledRecord{ImageRef: copy.ImageRef, RuntimeHandler: copy.RuntimeHandler, CredentialMapping: map[string]waybill.ImagePullCredentials{}}
		for name, c := range line["credentialMapping"].(object) {
			record.CredentialMapping[name] = credentialsIn(c.(object))
		}
		return outcome(n.store.PutRecord(record))
	case "deleteRecord":
		return outcome(n.store.DeleteRecord(copy))
	case "records":
		records, err := n.store.ListRecords()
		return answerOr(err, func() any { return each(records, n.record) })
	case "hasIntent":
		there, err := n.store.HasIntent(copy)
		return answerOr(err, func() any { return there })
	case "intents":
		intents, err := n.store.ListIntents()
		return answerOr(err, func() any {
			return each(intents, func(i waybill.ImagePullIntent) any {
				return telling(object{"image": i.Image, "handler": i.RuntimeHandler})
			})
		})
	case "putIntent":
		return outcome(n.store.PutIntent(copy))
	case "beginList":
		token, err := n.store.BeginList()
		must(n.T, err)
		token.Commit += uint64(line.number("ahead"))
		n.tokens[""], n.tokens[line.text("as")] = token, token
		return "done"
	case "observe":
		return n.observe(line)
	case "prune":
		report, err := n.store.Prune(line.images("inUse"), n.tokens[line.text("token")], n.how...)
		return answerOr(err, func() any {
			return telling(object{
				"removed": report.Removed, "keptInList": report.KeptInList, "keptNewer": report.KeptNewer,
				"keptWithoutCredentials": report.KeptWithoutCredentials, "preloadedRemoved": report.PreloadedRemoved,
			})
		})
	case "openPulls":
		pulls, err := n.store.OpenPulls()
		return answerOr(err, func() any {
			return each(pulls, func(p waybill.OpenPull) any {
				o := openPullObject(p).(object)
				for name, id := range n.pulls {
					if id == p.ID {
						o["as"] = name
					}
				}
				return o
			})
		})
	case "dropPull":
		return outcome(n.store.DropOpenPull(n.pull(line), line.text("reason"), n.how...))
	case "ledger":
		entries, err := n.store.Ledger()
		return answerOr(err, func() any { return each(entries, ledgerObject) })
	case "addToLedger":
		return outcome(n.store.AddToLedger(imageIn(line["entry"]), line.text("source"), line.text("reason"), n.how...))
	case "removeFromLedger":
		there, err := n.store.RemoveFromLedger(copy, line.text("reason"), n.how...)
		return answerOr(err, func() any { return there })
	case "explain":
		x, err := n.store.Explain(copy, line.texts("names")...)
		return answerOr(err, func() any { return explanationObject(x) })
	case "replaceHandlers":
		var handlers []waybill.RuntimeHandler
		for _, h := range line.list("handlers") {
			h := h.(object)
			handlers = append(handlers, waybill.RuntimeHandler{Name: h.text("name"), IsDefault: h.flag("default"), UserNamespaces: h.flag("userNamespaces")})
		}
		return outcome(second(n.store.ReplaceRuntimeHandlers(handlers, n.how...)))
	case "trust":
		trust, err := n.store.Trust()
		return answerOr(err, func() any { return trustObject(trust) })
	case "clearDistrust":
		report, err := n.store.ClearDistrust(line.text("reason"), waybill.ClearOptions{
			ImagesOnNode: line.images("onNode"), Adopt: line.flag("adopt"), AllowEmpty: line["allowEmpty"] != false, DryRun: line.flag("dryRun"),
		})
		return answerOr(err, func() any { return observeObject(report) })
	case "export":
		directory := filepath.Join(n.scratch, "kubelet")
		must(n.T, os.MkdirAll(directory, 0o700))
		report, err := n.store.Export(context.Background(), waybill.ExportOptions{
			KubeletDirectory: directory, ImagesOnNode: line.images("onNode"), AllowEmpty: line["allowEmpty"] != false,
		})
		return answerOr(err, func() any {
			o := object{"records": report.Records, "intents": report.Intents, "made": report.Made, "closed": report.Closed}
			if report.Spellings != 0 {
				o["spellings"] = report.Spellings
			}
			return o
		})
	case "statistics":
		s, err := n.store.Statistics()
		return answerOr(err, func() any {
			return telling(object{
				"records": s.Records, "ofOtherHandlers": s.NondefaultHandlerRecords, "handlers": s.RuntimeHandlers, "intents": s.Intents,
				"quarantineEntries": s.QuarantineEntries, "ledgerEntries": s.LedgerEntries, "distrustful": s.Distrustful,
			})
		})
	case "commits":
		s, err := n.store.Statistics()
		must(n.T, err)
		before := n.commits
		n.commits = s.CommitSequence
		return n.commits - before
	case "quarantine":
		entries, err := n.store.ListQuarantine()
		return answerOr(err, func() any {
			return each(entries, func(q waybill.QuarantineEntry) any { return object{"sha256": q.SHA256, "reason": q.Reason} })
		})
	}
	n.Fatalf("op %q is not known", op)
	return nil
}

func (n *node) ask(op string, copy waybill.ImageCopy, line object) any {
	asked := 0
	fetch := func() (waybill.PodCredentials, error) {
		asked++
		return withSecrets(secretsIn(line["secrets"])...), nil
	}
	words := func(d waybill.Decision) string {
		text := map[bool]string{true: "pull, ", false: "no pull, "}[d.Pull()]
		if result := d.Result.String(); result != "" {
			text += result
		} else {
			text += "not counted"
		}
		text += ", " + d.Reason.String()
		if d.CredentialsRead != (asked == 1) {
			text += ", contradicts itself"
		}
		if asked > 0 {
			text += ", asked " + map[bool]string{true: "once", false: "again"}[asked == 1]
		}
		return text
	}
	defer func() { must(n.T, n.store.Flush()) }()
	if op == "check" {
		d, err := n.store.MustAttemptPullLazily(copy, fetch)
		return answerOr(err, func() any { return words(d) })
	}
	policy, err := waybill.ParsePullPolicy(line.text("policy"))
	must(n.T, err)
	answer, err := n.store.EnsureImage(copy, policy, fetch)
	return answerOr(err, func() any {
		o := object{"action": answer.Action.String(), "message": answer.Message, "decision": "none"}
		if answer.Decision != nil {
			o["decision"] = words(*answer.Decision)
		}
		return o
	})
}

func credentialsIn(c object) waybill.ImagePullCredentials {
	return waybill.ImagePullCredentials{NodePodsAccessible: c.flag("nodePodsAccessible"), KubernetesSecrets: secretsIn(c["kubernetesSecrets"])}
}

func (n *node) pulled(op string, copy waybill.ImageCopy, line object) any {
	p := waybill.PulledImage{ImageCopy: copy, Pull: n.pull(line)}
	if op == "pull" {
		id, err := n.store.RecordPullIntent(copy)
		if err != nil {
			return outcome(err)
		}
		p.Pull = id
	}
	if c, there := line["credentials"].(object); there {
		p.Credentials = new(credentialsIn(c))
	}
	if entry, there := line["entry"]; there {
		p.Entry = new(imageIn(entry))
	}
	return outcome(n.store.RecordImagePulled(p))
}

func (n *node) observe(line object) any {
	list := waybill.ImageList{Images: line.images("images"), Complete: line["complete"] != false, Source: line.text("source")}
	for i := range line.number("many") {
		list.Images = append(list.Images, waybill.ImageOnNode{
			ID: fmt.Sprintf("sha256:%064d", i), RepoTags: []string{fmt.Sprintf("registry.example.com/many/%d:v1", i)},
		})
	}
	if name, there := line["token"]; !there {
		token, err := n.store.BeginList()
		must(n.T, err)
		list.Token = &token
	} else if name != nil {
		list.Token = new(n.tokens[name.(string)])
	}
	report, err := n.store.ObserveImages(list, n.how...)
	return answerOr(err, func() any { return observeObject(report) })
}

// pull is the one that a line names; without a name, none.
func (n *node) pull(line object) waybill.PullID {
	switch name := line["pull"].(type) {
	case float64:
		return waybill.PullID(name)
	case string:
		id, there := n.pulls[name]
		if !there {
			n.Fatalf("no pull is %q", name)
		}
		return id
	}
	return 0
}

func (n *node) record(r waybill.ImagePulledRecord) any {
	text, err := waybill.EncodePulledRecord(r, waybill.KubeletV1Beta1)
	must(n.T, err)
	var o object
	must(n.T, json.Unmarshal(text, &o))
	delete(o, "apiVersion")
	delete(o, "kind")
	o["handler"], o["manifest"], o["closedBecause"] = r.RuntimeHandler, r.ManifestDigest, r.ClosedBecause
	return telling(o)
}
