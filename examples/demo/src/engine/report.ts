/**
 * Tells the page how far a long job is, from 0 to 1, with a part of its result. It resolves to
 * whether to go on: false after the visitor has cancelled. A job awaits it at least every 50 ms of
 * work. Without a worker, that is also when the page responds.
 */
export type Report<T = undefined> = (fraction: number, update?: T) => boolean | Promise<boolean>;
