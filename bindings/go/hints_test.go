package waybill

import (
	"errors"
	"strings"
	"testing"
)

func TestEveryHintHasGoWords(t *testing.T) {
	seen := map[string]bool{}
	for h := HintRecover; h <= HintReplaceWitness; h++ {
		words := h.String()
		if words == "" || seen[words] {
			t.Errorf("hint %d: %q", h, words)
		}
		seen[words] = true
		for _, foreign := range []string{"`", "--", "_", "NodeStore"} {
			if strings.Contains(words, foreign) {
				t.Errorf("hint %d speaks another language: %q", h, words)
			}
		}
	}
	if HintNone.String() != "" || (HintReplaceWitness+1).String() != "" {
		t.Error("there are more hints than this test knows")
	}
}

func TestErrorsOfTheLibraryAdviseInGoWords(t *testing.T) {
	_, err := Observe(ObserveOptions{Directory: t.TempDir()})
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v", err)
	}
	if e.HintCode != HintCreate || e.Hint != HintCreate.String() {
		t.Errorf("hint %d %q of %v", e.HintCode, e.Hint, err)
	}
}
