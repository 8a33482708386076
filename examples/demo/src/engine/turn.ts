/** Measurements in turn: two at once in one worker would disturb each other. */
const queue: symbol[] = [];

/** ms between two looks at the queue. */
const interval = 25;

/**
 * Runs a measurement when those before it have ended.
 *
 * @param goOn is awaited while this one waits. If it returns false, this one leaves the queue
 * @returns what `body` returns; undefined if it left the queue
 */
export async function inTurn<T>(
  body: () => Promise<T>,
  goOn: () => boolean | Promise<boolean> = () => true,
): Promise<T | undefined> {
  const ticket = Symbol();
  queue.push(ticket);
  try {
    while (queue[0] !== ticket) {
      await new Promise((resolve) => setTimeout(resolve, interval));
      if (!(await goOn())) return undefined;
    }
    return await body();
  } finally {
    queue.splice(queue.indexOf(ticket), 1);
  }
}
