// Answers of Go's regexp package. Reads lines of JSON {pattern, texts, template}; writes for each one
// {error} or {matches: [{index, expanded}]}. The first line that it writes is the version of Go.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"runtime"
)

type question struct {
	Pattern  string   `json:"pattern"`
	Texts    []string `json:"texts"`
	Template string   `json:"template"`
}

type match struct {
	Index    []int  `json:"index"`
	Expanded string `json:"expanded"`
}

type answer struct {
	Error   string  `json:"error"`
	Matches []match `json:"matches"`
}

func ask(q question) answer {
	regex, err := regexp.Compile(q.Pattern)
	if err != nil {
		return answer{Error: err.Error()}
	}
	var a answer
	for _, text := range q.Texts {
		index := regex.FindStringSubmatchIndex(text)
		m := match{Index: index}
		if index != nil {
			m.Expanded = string(regex.ExpandString(nil, q.Template, text, index))
		}
		a.Matches = append(a.Matches, m)
	}
	return a
}

func main() {
	fmt.Println(runtime.Version())
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	out := bufio.NewWriter(os.Stdout)
	for lines.Scan() {
		var q question
		if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
			panic(err)
		}
		line, err := json.Marshal(ask(q))
		if err != nil {
			panic(err)
		}
		out.Write(line)
		out.WriteByte('\n')
	}
	out.Flush()
}
