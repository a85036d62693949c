// What the search shows first: names that match, lists of keys and names, guides, and then the rest.
var Scorer = {
  score: ([docname, title, anchor, descr, score, filename, kind]) => {
    if (docname.startsWith("reference/background/")) return score - 6;
    if (/^reference\/[a-z-]+$/.test(docname)) return score + 7;
    if (!docname.startsWith("reference/api/")) return score + 6;
    // members of a class are found through their class
    return kind === "object" && title !== docname.slice("reference/api/".length) ? score - 12 : score;
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
