/**
 * Makes a function that runs a job on the newest input. One job runs at a time. If the function is
 * called meanwhile, the job runs once more.
 *
 * @param job gets a function that tells whether it was called meanwhile
 * @param onError is called if a job fails, which also ends the jobs that wait
 */
export function latest(
  job: (isStale: () => boolean) => Promise<void>,
  onError: (error: unknown) => void,
): () => Promise<void> {
  let isStale = false;
  let isBusy = false;
  return async () => {
    isStale = true;
    if (isBusy) return;
    isBusy = true;
    try {
      while (isStale) {
        isStale = false;
        await job(() => isStale);
      }
    } catch (error) {
      onError(error);
    } finally {
      isBusy = false;
    }
  };
}
