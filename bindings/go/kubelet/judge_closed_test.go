package kubelet

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"waybill.dev/go"
)

// Under the closed rules each difference from the kubelet must come from one of the five rules. A
// difference in what is stored is attributed to the rule of the step that made it, and a different
// answer to the stored difference that causes it, or to rule 3.
//
//	1  replay compares full forms, closes what matches, keeps the intent
//	2  a failed pull drops only its own count
//	3  without a record an intent for any string of the repository closes
//	4  prune has the runtime's complete list and a token, and keeps what is being pulled; an empty
//	   list is refused
//	5  (of EnsureImage, which is not part of the kubelet's interface: can't occur here)
type closedRun struct {
	kubelet, closed *contender
	stored          [2]state       // the kubelet's, ours: after the latest step
	records         map[string]int // differing now: by which rule
	intents         map[string]int
	// Intents that an earlier process left, or whose outcome is unknown.
	inherited map[string]bool
	counts    map[string]int
	seen      *[6]closedCount
}

type closedCount struct{ stored, answers int }

func (c *closedRun) note(s step) {
	_, there := c.stored[1].intents[s.image]
	switch s.what {
	case restart:
		c.inherited, c.counts = map[string]bool{}, map[string]int{}
		for image := range c.stored[1].intents {
			c.inherited[image] = true
		}
	case intent:
		if c.counts[s.image] == 0 {
			c.inherited[s.image] = there
		}
		c.counts[s.image]++
	case failed:
		if s.cancelled || c.counts[s.image] == 0 {
			c.inherited[s.image] = true
		}
		c.counts[s.image] = max(0, c.counts[s.image]-1)
	case pulled:
		if imageName(s.image) != "" {
			c.inherited[s.image] = false
			c.counts[s.image] = max(0, c.counts[s.image]-1)
		}
	}
}

// imageName is the image name, or "" if the string does not parse.
func imageName(image string) string {
	parsed, ok := waybill.ParseImage(image)
	if !ok {
		return ""
	}
	return parsed.Name
}

// ruleOfRecord is the rule that made a record differ in a step, or 0.
func (c *closedRun) ruleOfRecord(s step, ref string, before [2]state) int {
	_, kubelets := c.stored[0].records[ref]
	_, ours := c.stored[1].records[ref]
	onNode := slices.IndexFunc(s.onNode, func(image kubecontainer.Image) bool { return image.ID == ref })
	switch {
	case s.what == restart && ours && !kubelets && onNode >= 0 && !s.noList:
		for intent := range before[1].intents {
			for _, image := range s.onNode {
				names := slices.Concat(image.RepoTags, image.RepoDigests)
				if image.ID == ref && slices.ContainsFunc(names, func(name string) bool { return normalised(name) == normalised(intent) }) {
					return 1
				}
			}
		}
	case s.what == prune && ours && !kubelets:
		if onNode >= 0 || len(s.onNode) == 0 || beingPulled(before[1].names[ref], before[1]) {
			return 4
		}
	case s.what == prune && kubelets && !ours && onNode < 0:
		return 4
	}
	return 0
}

// beingPulled says whether an intent names a repository that a record has an entry for.
func beingPulled(names []string, stored state) bool {
	for image := range stored.intents {
		if slices.ContainsFunc(names, func(name string) bool { return repository(name) == repository(image) }) {
			return true
		}
	}
	return false
}

func (c *closedRun) ruleOfIntent(s step, image string) int {
	_, kubelets := c.stored[0].intents[image]
	_, ours := c.stored[1].intents[image]
	if kubelets || !ours {
		return 0 // no rule takes an intent away
	}
	switch {
	case s.what == restart && !s.noList:
		for _, listed := range s.onNode {
			if slices.Contains(listed.RepoTags, image) || slices.Contains(listed.RepoDigests, image) {
				return 1
			}
		}
	case s.what == failed && s.image == image && c.inherited[image]:
		return 2
	}
	return 0
}

func (c *closedRun) ruleOfAnswer(s step, before [2]state) int {
	if rule, differs := c.records[s.ref]; differs {
		return rule
	}
	if _, there := before[1].records[s.ref]; there {
		return 0
	}
	if rule, differs := c.intents[s.image]; differs {
		return rule
	}
	for image := range before[1].intents {
		if image != s.image && repository(image) == repository(s.image) {
			return 3
		}
	}
	return 0
}

// play does one step on both, and returns the differences that no rule explains.
func (c *closedRun) play(s step) string {
	time.Sleep(s.after)
	before := c.stored
	c.note(s)
	want, got := c.kubelet.do(s), c.closed.do(s)
	want.intents, want.records = -1, -1 // the stores are compared instead
	if d := differenceOf(c.kubelet.name, want, c.closed.name, got); d != "" {
		rule := 0
		if s.what == decide {
			rule = c.ruleOfAnswer(s, before)
		}
		if rule == 0 {
			return "no rule explains the answer\n" + d
		}
		if want.pull && !got.pull && rule != 4 {
			return fmt.Sprintf("rule %d opened an image that the kubelet keeps closed\n%s", rule, d)
		}
		c.seen[rule].answers++
	}
	if s.what == decide && want.fetched == 0 && got.fetched == 0 {
		return "" // nothing was written
	}
	for i, contender := range []*contender{c.kubelet, c.closed} {
		stored, err := contender.state(false)
		if err != nil {
			return fmt.Sprintf("%s: %v", contender.name, err)
		}
		c.stored[i] = stored
	}
	records, difference := c.explain("record", c.records, differingKeys(c.stored[0].records, c.stored[1].records), func(ref string) int {
		return c.ruleOfRecord(s, ref, before)
	})
	if difference != "" {
		return difference
	}
	intents, difference := c.explain("intent", c.intents, differingKeys(c.stored[0].intents, c.stored[1].intents), func(image string) int {
		return c.ruleOfIntent(s, image)
	})
	c.records, c.intents = records, intents
	return difference
}

func (c *closedRun) explain(what string, known map[string]int, differing []string, ruleOf func(string) int) (map[string]int, string) {
	explained := map[string]int{}
	for _, key := range differing {
		rule, already := known[key]
		if !already {
			if rule = ruleOf(key); rule == 0 {
				return nil, fmt.Sprintf("no rule explains the %s of %q\n  %s: %q\n  %s: %q", what, key,
					c.kubelet.name, c.stored[0].of(what)[key], c.closed.name, c.stored[1].of(what)[key])
			}
			c.seen[rule].stored++
		}
		explained[key] = rule
	}
	return explained, ""
}

func (s state) of(what string) map[string]string {
	if what == "record" {
		return s.records
	}
	return s.intents
}

func TestClosedRulesExplainEachDifference(t *testing.T) {
	scratch := scratchDir(t)
	var seen [6]closedCount
	fails := func(history []step, seen *[6]closedCount) (played int, difference string) {
		difference = inFakeTime(t, scratch, func(directory string) string {
			run := &closedRun{
				kubelet: kubeletOverFiles(filepath.Join(directory, "files")),
				closed:  ourManager(filepath.Join(directory, "closed"), waybill.RulesClosed),
				seen:    seen,
			}
			defer run.closed.stop()
			for i, s := range history {
				played = i + 1
				if found := run.play(s); found != "" {
					return found
				}
			}
			return ""
		})
		return played, difference
	}
	forEachHistory(t, 5_000, func(seed uint64, history []step) bool {
		played, difference := fails(history, &seen)
		if difference == "" {
			return true
		}
		short, shortDifference := shorten(history, 20*time.Second, func(history []step) (int, string) {
			return fails(history, new([6]closedCount))
		})
		var text strings.Builder
		for _, s := range short {
			fmt.Fprintf(&text, "  %v\n", s)
		}
		t.Errorf("WAYBILL_SEED=%d, step %d:\n%s\nshortened to\n%s%s", seed, played, difference, text.String(), shortDifference)
		return false
	})
	for rule := 1; rule <= 4; rule++ {
		t.Logf("rule %d: %d differences stored, %d answers", rule, seen[rule].stored, seen[rule].answers)
		if seen[rule].answers == 0 && os.Getenv("WAYBILL_SEED") == "" && os.Getenv("WAYBILL_JUDGE_STEPS") == "" {
			t.Errorf("rule %d never mattered", rule)
		}
	}
}
