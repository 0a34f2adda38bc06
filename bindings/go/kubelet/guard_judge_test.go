package kubelet

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// The guard's judge: random histories of the kubelet's own code over its own files, with a guard
// beside it (tests/guard/driver) that is stopped, killed and started again. The power fails, too, and
// takes what nobody synced. The world (guard_world_test.go) knows how each image came to the node, and
// so who may use it. WAYBILL_JUDGE_STEPS is the number of all steps, of
// new histories each time; WAYBILL_SEED replays one history.

const stepsOfGuardHistory = 160

// guardStep is drawn from a seed of its own, so that a history stays one when others are left out.
type guardStep struct {
	what string
	seed uint64
}

// What happens, and how often.
var guardedDoings = []struct {
	weight int
	what   string
	do     func(w *guardWorld, r *rand.Rand)
}{
	{14, "pull", (*guardWorld).pull},
	{5, "pulls meet", (*guardWorld).pullsMeet},
	{6, "arrive", (*guardWorld).arrive},
	{16, "end pull", (*guardWorld).endPull},
	{9, "arrive late", (*guardWorld).arriveLate},
	{10, "decide", (*guardWorld).decide},
	{6, "move tag", (*guardWorld).moveTag},
	{3, "import by hand", (*guardWorld).importByHand},
	{4, "remove image", (*guardWorld).removeImage},
	{1, "runtime's disk goes", (*guardWorld).wipeRuntime},
	{4, "runtime's disk is back", (*guardWorld).mountAgain},
	{3, "change secret", (*guardWorld).changeSecret},
	{5, "prune", (*guardWorld).prune},
	{2, "hours pass", (*guardWorld).hoursPass},
	{14, "guard: events", (*guardWorld).guardEvents},
	{10, "guard: events and list", (*guardWorld).quiet},
	{5, "guard: begin list", (*guardWorld).beginList},
	{5, "guard: draw list", (*guardWorld).drawList},
	{7, "guard: take list", (*guardWorld).takeList},
	{2, "guard: compare", (*guardWorld).compare},
	{2, "guard: stop", (*guardWorld).stopGuard},
	{3, "guard: kill", (*guardWorld).killGuard},
	{3, "guard: kill amid", (*guardWorld).killAmid},
	{5, "guard: start beside", (*guardWorld).startBeside},
	{4, "kubelet: restart", (*guardWorld).restartKubelet},
	{1, "kubelet: stop", (*guardWorld).stopKubelet},
	{2, "kubelet: start unguarded", (*guardWorld).startUnguarded},
	{3, "kubelet: start amid", (*guardWorld).startAmid},
	{5, "guarded start", (*guardWorld).guardedStart},
	{4, "power cut", (*guardWorld).powerCut},
	{3, "node's credential", (*guardWorld).nodeCredential},
	{2, "somebody plants", (*guardWorld).plant},
	{1, "a row is lost", (*guardWorld).loseRow},
}

func makeGuardHistory(seed uint64) []guardStep {
	r := rand.New(rand.NewPCG(seed, 1))
	total := 0
	for _, doing := range guardedDoings {
		total += doing.weight
	}
	history := []guardStep{{what: "node is new", seed: r.Uint64()}}
	for len(history) < stepsOfGuardHistory {
		at := r.IntN(total)
		for _, doing := range guardedDoings {
			if at -= doing.weight; at < 0 {
				history = append(history, guardStep{doing.what, r.Uint64()})
				break
			}
		}
	}
	return append(history, guardStep{"guard: start beside", 1}, guardStep{"guard: events and list", 2}, guardStep{"guarded start", 3})
}

// playGuarded plays a history until something is wrong. It returns how many steps were played, what
// is wrong ("" if nothing is), and what happened.
func playGuarded(history []guardStep, driver, directory string, saw map[string]int) (played int, wrong string, happened []string) {
	w := newGuardWorld(rand.New(rand.NewPCG(history[0].seed, 2)), driver, directory, saw)
	defer w.driver.kill()
	w.setUp()
	for i, s := range history {
		r := rand.New(rand.NewPCG(s.seed, 3))
		if i > 0 && w.wrong == "" {
			w.timePasses(r)
			for _, doing := range guardedDoings {
				if doing.what == s.what {
					w.what = s.what
					doing.do(w, r)
				}
			}
			w.checkPullsInFlight()
		}
		if w.wrong != "" {
			return i + 1, w.wrong, w.happened
		}
	}
	return len(history), "", w.happened
}

func TestGuardLeavesNothingOpen(t *testing.T) {
	driver := guardDriver(t)
	scratch := scratchDir(t)
	saw := map[string]int{}
	var happened []string
	// The same ones each time; more of them, and new ones, for whoever asks.
	first := uint64(20261123)
	if !wholeRun() {
		first = newSeed()
	}
	judge(t, first, 6_400, stepsOfGuardHistory, makeGuardHistory, 30*time.Second,
		func(_ uint64, history []guardStep) (played int, wrong string) {
			wrong = inFakeTime(t, scratch, func(directory string) string {
				var now []string
				if played, wrong, now = playGuarded(history, driver, directory, saw); wrong != "" {
					happened = now
				}
				return wrong
			})
			return played, wrong
		}, func([]guardStep) string { return "  " + strings.Join(happened, "\n  ") + "\n" })
	t.Logf("%v", saw)
	for _, what := range guardCases {
		if saw[what] == 0 && wholeRun() {
			t.Errorf("never: %s", what)
		}
	}
}
