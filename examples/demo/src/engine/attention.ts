/** attention */
export {};
