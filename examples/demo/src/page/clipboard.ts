/** Copies text to the clipboard. @returns whether the browser did */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false; // it is refused, or the page is not secure
  }
}
