package kubelet

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// The judge: the kubelet's own PullManager over its own files says what is right. WAYBILL_JUDGE_STEPS is
// the number of all steps; WAYBILL_SEED replays one history.

const stepsOfHistory = 250

func numberFromEnv(tb testing.TB, name string, otherwise uint64) uint64 {
	tb.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	number, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		tb.Fatalf("%s is no number: %v", name, err)
	}
	return number
}

// wholeRun says whether nobody asked for other histories than the usual ones.
func wholeRun() bool {
	return os.Getenv("WAYBILL_SEED") == "" && os.Getenv("WAYBILL_JUDGE_STEPS") == ""
}

// judge plays histories with one seed after another until all steps are done, or one fails: that is shortened, and told.
func judge[S any](t *testing.T, first, steps, length uint64, history func(seed uint64) []S, limit time.Duration,
	fails func(seed uint64, history []S) (played int, difference string), tell func(history []S) string) {
	t.Helper()
	histories := max(1, numberFromEnv(t, "WAYBILL_JUDGE_STEPS", steps)/length)
	if os.Getenv("WAYBILL_SEED") != "" {
		first, histories = numberFromEnv(t, "WAYBILL_SEED", 0), 1
	}
	t.Logf("%d histories of %d steps from WAYBILL_SEED=%d on", histories, length, first)
	lastSaid := time.Now()
	for seed := first; seed < first+histories; seed++ {
		played, difference := fails(seed, history(seed))
		if difference != "" {
			short, shortDifference := shorten(history(seed), limit, func(shorter []S) (int, string) { return fails(seed, shorter) })
			t.Errorf("WAYBILL_SEED=%d, step %d:\n%s\nshortened to\n%s%s", seed, played, difference, tell(short), shortDifference)
			return
		}
		if time.Since(lastSaid) > time.Minute {
			t.Logf("%d of %d histories", seed-first+1, histories)
			lastSaid = time.Now()
		}
	}
}

func tellSteps(history []step) string {
	var text strings.Builder
	for _, s := range history {
		fmt.Fprintf(&text, "  %v\n", s)
	}
	return text.String()
}

// newSeed is short enough to type.
func newSeed() uint64 { return rand.Uint64() >> 16 }

// inFakeTime runs a body in which time passes only where a history says so.
func inFakeTime(t *testing.T, scratch string, body func(directory string) string) (found string) {
	directory, err := os.MkdirTemp(scratch, "history-")
	must(t, err)
	defer os.RemoveAll(directory)
	synctest.Test(t, func(*testing.T) { found = body(directory) })
	return found
}

// The histories must have provoked these cases, or the judge has judged little.
const (
	sawFetchError = "credentials could not be had"
	sawWriteBack  = "a match was written back"
	sawLimit      = "a changed Secret did not count at the limit"
	sawReplay     = "an intent was replayed"
	sawPruned     = "a record was pruned"
	sawUnparsed   = "an image that does not parse was refused"
)

// compare plays a history on each contender and stops at the first difference. It returns how many
// steps were played, and the difference; "" if there is none.
func compare(history []step, directory string, saw map[string]int) (played int, difference string) {
	judge := kubeletOverFiles(filepath.Join(directory, "files"))
	others := []*contender{
		kubeletOverStore(filepath.Join(directory, "accessor")),
		ourManager(filepath.Join(directory, "manager")),
	}
	defer func() {
		for _, other := range others {
			if err := other.stop(); err != nil && difference == "" {
				difference = err.Error()
			}
		}
	}()
	for i, s := range history {
		time.Sleep(s.after)
		if s.what == restart && i > 0 {
			for _, other := range others {
				if d := compareStates(judge, other); d != "" {
					return i + 1, d
				}
			}
		}
		want := judge.do(s)
		observe(judge, s, want, saw)
		for _, other := range others {
			if d := differenceOf(judge.name, want, other.name, other.do(s)); d != "" {
				return i + 1, d
			}
		}
	}
	for _, other := range others {
		if d := compareStates(judge, other); d != "" {
			return len(history), d
		}
	}
	return len(history), ""
}

func observe(judge *contender, s step, want answer, saw map[string]int) {
	saw[s.what]++
	for i, label := range checkLabels {
		saw["label "+label] += int(want.labels[i])
	}
	switch {
	case s.what == decide && want.err != nil:
		saw[sawFetchError]++
	case s.what == decide && want.records >= 0:
		saw[sawWriteBack]++
	case s.what == decide && want.labels[3] > 0 && imageName(s.image) == "":
		saw[sawUnparsed]++
	case s.what == decide && want.fetched > 0 && want.pull:
		record, _, _ := judge.accessor.GetImagePulledRecord(s.ref)
		for _, secret := range record.CredentialMapping[imageName(s.image)].KubernetesSecrets {
			for _, own := range s.secrets {
				secret.CredentialHash = own.CredentialHash
				if own == secret {
					saw[sawLimit]++
					return
				}
			}
		}
	case s.what == restart && want.records >= 0:
		saw[sawReplay]++
	case s.what == prune && want.records >= 0:
		saw[sawPruned]++
	}
}

func differenceOf(judgeName string, want answer, name string, got answer) string {
	same := want.failed == got.failed && want.pull == got.pull && want.fetched == got.fetched && want.labels == got.labels
	if same && want.err == errFetch {
		same = got.err == errFetch
	}
	same = same && (want.intents < 0 || want.intents == got.intents) && (want.records < 0 || want.records == got.records)
	if same {
		return ""
	}
	return fmt.Sprintf("%s: %+v\n%s: %+v", judgeName, want, name, got)
}

func compareStates(judge, other *contender) string {
	want, err := judge.state(true)
	if err != nil {
		return fmt.Sprintf("%s: %v", judge.name, err)
	}
	got, err := other.state(true)
	if err != nil {
		return fmt.Sprintf("%s: %v", other.name, err)
	}
	var text strings.Builder
	for _, key := range differingKeys(want.records, got.records) {
		fmt.Fprintf(&text, "record of %q\n  %s: %q\n  %s: %q\n", key, judge.name, want.records[key], other.name, got.records[key])
	}
	for _, key := range differingKeys(want.intents, got.intents) {
		fmt.Fprintf(&text, "intent of %q\n  %s: %q\n  %s: %q\n", key, judge.name, want.intents[key], other.name, got.intents[key])
	}
	return text.String()
}

// shorten leaves steps out of a history while it still fails. The first step, a start, stays.
func shorten[S any](history []S, limit time.Duration, fails func([]S) (int, string)) ([]S, string) {
	played, difference := fails(history)
	history = history[:played]
	end := time.Now().Add(limit)
	for size := len(history) / 2; size > 0; size /= 2 {
		for at := 1; at < len(history) && time.Now().Before(end); {
			shorter := slices.Delete(slices.Clone(history), at, min(at+size, len(history)))
			if played, found := fails(shorter); found != "" {
				history, difference = shorter[:played], found
			} else {
				at += size
			}
		}
	}
	return history, difference
}

func TestJudgeFindsNoDifference(t *testing.T) {
	scratch := scratchDir(t)
	saw := map[string]int{}
	judge(t, newSeed(), 20_000, stepsOfHistory, func(seed uint64) []step { return makeHistory(seed, stepsOfHistory) }, 20*time.Second,
		func(_ uint64, history []step) (played int, difference string) {
			difference = inFakeTime(t, scratch, func(directory string) (found string) {
				played, found = compare(history, directory, saw)
				return found
			})
			return played, difference
		}, tellSteps)
	t.Logf("%v", saw)
	for _, what := range []string{sawFetchError, sawWriteBack, sawLimit, sawReplay, sawPruned, sawUnparsed} {
		if saw[what] == 0 && wholeRun() && !t.Failed() {
			t.Errorf("never: %s", what)
		}
	}
}
