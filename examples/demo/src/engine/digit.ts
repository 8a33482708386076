/** digit */
export {};
