package waybill

import "strconv"

// word returns the value's name, or kind(value) if it has none.
func word(value int64, kind string, names ...string) string {
	if value >= 0 && value < int64(len(names)) && names[value] != "" {
		return names[value]
	}
	return kind + "(" + strconv.FormatInt(value, 10) + ")"
}
