/**
 * The rows of the page's table: their number, their areas, and `show`. That function hides all rows
 * that do not have every word, the area and the word in `kept`, and returns how many rows are left.
 * 'none' in `kept` means rows that have no word there.
 */
export function readRows() {
  const rows = Array.from(document.querySelectorAll('.lab-rows tbody tr'), (element) => ({
    element,
    text: element.textContent.toLowerCase(),
    area: element.dataset.area,
    kept: element.dataset.kept || 'none',
  }));
  return {
    total: rows.length,
    areas: [...new Set(rows.map(({ area }) => area))].filter(Boolean).sort(),
    show({ text, area, kept }) {
      const words = text.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const row of rows) {
        const isShown =
          (!area || row.area === area) &&
          (!kept || row.kept === kept) &&
          words.every((word) => row.text.includes(word));
        row.element.hidden = !isShown;
        shown += isShown;
      }
      return shown;
    },
  };
}
