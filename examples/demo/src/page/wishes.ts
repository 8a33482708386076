/** What visitors ask of all pages, by settings of their browser. */

/** Whether the visitor wants pages to fetch less. Only some browsers tell. */
export const savesData = (): boolean =>
  (navigator as Navigator & { connection?: { saveData?: boolean } }).connection?.saveData === true;

export const wantsLessMotion = (): boolean =>
  matchMedia('(prefers-reduced-motion: reduce)').matches;
