package waybill_test

import (
	"bufio"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"waybill.dev/go"
)

// A line of a recorded history of one node, with the kubelet's answer and state.
type traceLine struct {
	Op                     string
	At                     string
	Policy                 string
	Allow                  []string
	OnNode                 []waybill.ImageOnNode
	Image, ImageRef        string
	Secrets                []waybill.ImagePullSecret
	ServiceAccount         *waybill.ImagePullServiceAccount
	CredentialsUnavailable bool
	Credentials            *waybill.ImagePullCredentials
	InUse                  []string
	Until                  string
	Pulled                 []json.RawMessage
	Pulling                []string
	Answer                 *struct {
		Pull, CredentialsRead, Error bool
		Result                       string
	}
}

// The kubelet's recorded histories through Go: every answer and every state is the kubelet's.
func TestTraces(t *testing.T) {
	files, err := filepath.Glob("../../tests/fixtures/traces/*.jsonl")
	must(t, err)
	if len(files) == 0 {
		t.Skip("no fixtures: the package is outside its tree")
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			f, err := os.Open(file)
			must(t, err)
			defer f.Close()
			p := player{T: t, options: optionsIn(scratch(t))}
			p.options.Rules = waybill.RulesKubelet
			p.options.Clock = waybill.NewManualClock(time.Unix(0, 0))
			lines := bufio.NewScanner(f)
			lines.Buffer(nil, 16<<20)
			for n := 1; lines.Scan() && !t.Failed(); n++ {
				var line traceLine
				must(t, json.Unmarshal(lines.Bytes(), &line))
				p.line = n
				p.play(&line)
			}
			must(t, lines.Err())
		})
	}
}

type player struct {
	*testing.T
	options waybill.Options
	store   *waybill.Store
	line    int
}

func (p *player) play(line *traceLine) {
	at, err := waybill.ParseTimestamp(line.At)
	must(p.T, err)
	p.options.Clock.Set(at)
	switch line.Op {
	case "open":
		p.open(line)
	case "check":
		p.check(line)
	case "intent":
		intend(p.T, p.store, waybill.ImageCopy{Image: line.Image})
	case "pulled":
		err := p.store.RecordImagePulled(waybill.PulledImage{ImageCopy: waybill.ImageCopy{Image: line.Image, ImageRef: line.ImageRef}, Credentials: line.Credentials})
		if _, parses := waybill.ParseImage(line.Image); parses {
			must(p.T, err)
		} else {
			wantCode(p.T, err, waybill.ErrInvalidArgument)
		}
	case "failed":
		must(p.T, p.store.RecordImagePullFailed(waybill.ImageCopy{Image: line.Image}, waybill.PullFailed, 0))
	case "prune":
		until, err := waybill.ParseTimestamp(line.Until)
		must(p.T, err)
		images := make([]waybill.ImageOnNode, len(line.InUse))
		for i, ref := range line.InUse {
			images[i].ID = ref
		}
		_, err = p.store.PruneBefore(images, until, waybill.AllowEmpty)
		must(p.T, err)
	case "state":
		p.state(line)
	default:
		p.Fatalf("line %d: op %q", p.line, line.Op)
	}
}

func (p *player) open(line *traceLine) {
	mode, err := waybill.ParseVerificationMode(line.Policy)
	must(p.T, err)
	if p.store != nil {
		must(p.T, p.store.Close())
	}
	p.options.Policy, err = waybill.NewVerificationPolicy(mode, line.Allow, waybill.AllowlistAnyImage)
	must(p.T, err)
	p.options.ImagesOnNode = append([]waybill.ImageOnNode{}, line.OnNode...)
	p.options.AllowEmpty = true // as the kubelet
	p.store = open(p.T, p.options)
	if r := p.store.RecoveryReport(); r.Distrustful {
		p.Errorf("line %d: %s", p.line, r.DistrustReason)
	}
}

// The answer is the same with given and with fetched credentials: lines alternate.
func (p *player) check(line *traceLine) {
	credentials := waybill.PodCredentials{Secrets: line.Secrets, ServiceAccount: line.ServiceAccount}
	var d waybill.Decision
	var err error
	if line.CredentialsUnavailable || p.line%2 == 0 {
		asked := 0
		d, err = p.store.MustAttemptPullLazily(waybill.ImageCopy{Image: line.Image, ImageRef: line.ImageRef}, func() (waybill.PodCredentials, error) {
			asked++
			if line.CredentialsUnavailable {
				return waybill.PodCredentials{}, waybill.ErrCredentialsUnavailable
			}
			return credentials, nil
		})
		if (asked == 1) != d.CredentialsRead {
			p.Errorf("line %d: %+v, asked %d times", p.line, d, asked)
		}
	} else {
		d = p.store.MustAttemptPull(waybill.ImageCopy{Image: line.Image, ImageRef: line.ImageRef}, credentials)
	}
	must(p.T, p.store.Flush()) // the kubelet writes back before it answers
	want := line.Answer
	if d.Pull() != want.Pull || d.CredentialsRead != want.CredentialsRead || d.Result.String() != want.Result || (err != nil) != want.Error {
		p.Errorf("line %d: %+v, %v; want %+v", p.line, d, err, *want)
	}
}

func (p *player) state(line *traceLine) {
	must(p.T, p.store.Flush())
	records, err := p.store.ListRecords()
	must(p.T, err)
	got := map[string]any{}
	for _, r := range records {
		text, err := waybill.EncodePulledRecord(r, waybill.KubeletV1Beta1)
		must(p.T, err)
		got[r.ImageRef] = parsed(p.T, text)
	}
	want := map[string]any{}
	for _, r := range line.Pulled {
		record, err := waybill.DecodePulledRecord(r)
		must(p.T, err)
		want[record.ImageRef] = parsed(p.T, r)
	}
	for ref := range maps.Keys(want) {
		if !reflect.DeepEqual(got[ref], want[ref]) {
			p.Errorf("line %d: record of %s\n%v\nwant\n%v", p.line, ref, got[ref], want[ref])
		}
		delete(got, ref)
	}
	if len(got) != 0 {
		p.Errorf("line %d: records that should not be: %v", p.line, got)
	}
	intents, err := p.store.ListIntents()
	must(p.T, err)
	var images []string
	for _, i := range intents {
		images = append(images, i.Image)
	}
	slices.Sort(line.Pulling)
	if !slices.Equal(images, line.Pulling) {
		p.Errorf("line %d: intents %q, want %q", p.line, images, line.Pulling)
	}
}

func parsed(t testing.TB, text []byte) any {
	t.Helper()
	var value any
	must(t, json.Unmarshal(text, &value))
	return value
}
